"""Which number answers which claim of the paper: one short function a claim."""

import numpy as np
import pandas as pd

from mbc.claims import (
    NOT_REPRODUCED,
    NOT_RUN,
    OTHER_SIZE,
    REPRODUCED,
    TOO_FEW,
    Answer,
    Claim,
    Measured,
    judge_share,
    judge_size,
    mean_with_interval,
)
from mbc.mechanism_claims import Tables, judge_mechanism
from mbc.runs import RANDOM_WEIGHTS

NO_RUNS: Answer = (Measured(None), NOT_RUN, "the parameters name no runs that could measure it")


def judge_all(
    paper: dict, table: pd.DataFrame, scaling: dict, effects: dict, mechanism: Tables
) -> list[Claim]:
    """Return every claim of the paper's data file with its verdict, in the order of the file.

    Args:
        paper: for each claim its section, words and number.
        table: the table of runs.
        scaling: the scaling metrics.
        effects: the metrics of the other experiments.
        mechanism: tables of what was found inside the followed runs.
    """
    transformers = table[
        (table["network"] == "transformer")
        & (table["direction"] == "backward")
        & (table["fibre"] == "distinct")
        & (table["start_from"] == RANDOM_WEIGHTS)
        & table["tau_status"].isin(["observed", "censored"])
    ]
    answers = {
        **_plateau(paper, transformers),
        **_scaling(paper, table, scaling),
        **_noise(paper, transformers, effects),
        **_cascade(paper, transformers),
        **_directions(paper, effects),
        **judge_mechanism(paper, mechanism),
    }
    return [
        Claim(
            name,
            entry["section"],
            entry["claim"],
            entry.get("value"),
            *answers.get(name, NO_RUNS),
        )
        for name, entry in paper.items()
    ]


def _plateau(paper: dict, runs: pd.DataFrame) -> dict[str, Answer]:
    known = runs.dropna(subset="plateau_ratio")
    height = mean_with_interval(known["plateau_ratio"])
    early = (known["plateau_reached_status"] == "observed") & (
        known["plateau_reached"] <= paper["plateau_forms_early"]["limit"]
    )
    near = known["plateau_ratio"].between(0.9, 1.1)
    *shares, rule = judge_share((known["marginal_status"] == "observed").tolist())
    strict_rule = (
        "at some evaluation before the onset, joint loss near log k, mass on the fibre and B-gap "
        f"large (transition.marginal_* in params.yaml); {rule}"
    )
    ignored = known["plateau_z_gap"].abs() < paper["z_gap_on_plateau"]["limit"]
    return {
        "plateau_height": (height, *judge_size(height, paper["plateau_height"], 0.0)),
        "plateau_forms_early": judge_share(early.tolist()),
        "z_gap_on_plateau": judge_share(ignored.tolist()),
        "two_regimes": judge_share((near & (known["tau_status"] == "observed")).tolist()),
        "marginal_first": judge_share(near.tolist()),
        "marginal_first_strict": (*shares, strict_rule),
    }


def _scaling(paper: dict, table: pd.DataFrame, scaling: dict) -> dict[str, Answer]:
    law = scaling["dataset_size"]
    low, high = law.get("bootstrap_interval", (None, None))
    exponent = Measured(law.get("exponent"), low, high, law["n_runs"], law["statement"])
    above = "reproduced if the whole interval lies above 1, not if it lies below, else undecided"
    if low is None:
        faster = TOO_FEW
    else:
        faster = REPRODUCED if low > 1 else NOT_REPRODUCED if high < 1 else TOO_FEW
    squared = Measured(law.get("r_squared"), n_runs=law["n_runs"])
    answers = {
        "exponent": (exponent, *judge_size(exponent, paper["exponent"], 0.0)),
        "exponent_above_1": (exponent, faster, above),
        "power_law_fit": (squared, *judge_size(squared, paper["power_law_fit"], 0.0)),
        "threshold_robustness": _thresholds(paper["threshold_robustness"]["limit"], scaling),
        "seed_variation": _seed_variation(paper["seed_variation"], table),
    }
    for size, name in zip(
        sorted(scaling["fixed_size"], key=int),
        ("k_independence_10000", "k_independence_20000"),
        strict=False,
    ):
        answers[name] = _independence(scaling["fixed_size"][size])
    return answers


def _independence(fit: dict) -> Answer:
    test = fit["equivalence"]
    low, high = test.get("interval", (None, None))
    ours = Measured(fit.get("exponent"), low, high, fit["n_runs"], "90% interval of the test")
    rule = (
        f"reproduced if two one-sided tests show |exponent| < {test['margin']:g} at level "
        f"{test['level']:g}; not reproduced if the interval lies wholly outside; else undecided"
    )
    if test["equivalent"]:
        return ours, REPRODUCED, rule
    outside = low is not None and (low > test["margin"] or high < -test["margin"])
    return ours, NOT_REPRODUCED if outside else TOO_FEW, rule


def _thresholds(allowed: float, scaling: dict) -> Answer:
    exponents = [fit["exponent"] for fit in scaling["thresholds"].values() if "exponent" in fit]
    rule = f"reproduced if the largest less the smallest exponent is below {allowed:g}"
    if len(exponents) < 2:
        return Measured(None), TOO_FEW, rule
    spread = max(exponents) - min(exponents)
    runs = scaling["dataset_size"]["n_runs"]
    ours = Measured(spread, n_runs=runs)
    return ours, REPRODUCED if spread < allowed else NOT_REPRODUCED, rule


def _seed_variation(paper: dict, table: pd.DataFrame) -> Answer:
    rule = "reproduced if the mean over conditions with 3 seeds or more lies in the paper's range"
    observed = table[table["tau_status"] == "observed"].astype({"tau": float})
    groups = observed.groupby("condition")["tau"]
    variation = (groups.std() / groups.mean())[groups.size() >= 3]
    if variation.empty:
        return Measured(None, note="needs 3 seeds"), TOO_FEW, rule
    ours = mean_with_interval(variation)
    inside = paper["low"] <= ours.value <= paper["high"]
    return ours, REPRODUCED if inside else OTHER_SIZE, rule


def _noise(paper: dict, runs: pd.DataFrame, effects: dict) -> dict[str, Answer]:
    batch, rate = effects["batch_size"], effects["learning_rate"]
    noise = effects["label_noise"]
    answers = {}
    for name, ours in (
        ("batch_size_examples", _spread(batch["examples"])),
        ("batch_size_steps", _end_to_end(batch["steps"], inverted=True)),
        ("learning_rate_ratio", _lr_ratio(runs)),
        ("label_noise", _end_to_end(noise["steps"])),
    ):
        answers[name] = (ours, *judge_size(ours, paper[name], 1.0))
    steps = rate["steps"]
    order = steps.get("monotone")
    answers["learning_rate_monotone"] = (
        Measured(steps.get("concordance"), n_runs=steps["n_observed"] + steps["n_censored"]),
        TOO_FEW if order is None else REPRODUCED if order == "rising" else NOT_REPRODUCED,
        "reproduced if the geometric means rise from each rate to the next",
    )
    hot = runs[runs["lr"] == paper["learning_rate_limit"]["limit"]]
    hot_observed = int((hot["tau_status"] == "observed").sum())
    answers["learning_rate_limit"] = (
        Measured(float(hot_observed), n_runs=len(hot), note="runs with a transition"),
        NOT_RUN if hot.empty else REPRODUCED if hot_observed == 0 else NOT_REPRODUCED,
        "reproduced if no run at this rate had a transition within its step budget",
    )
    return answers


def _spread(effect: dict) -> Measured:
    bound = effect["largest_over_smallest_is_lower_bound"]
    return Measured(
        effect.get("largest_over_smallest_response"),
        n_runs=effect["n_observed"] + effect["n_censored"],
        note="at least: the slowest was censored" if bound else "",
    )


def _end_to_end(effect: dict, *, inverted: bool = False) -> Measured:
    """Return the ratio of the ends of a sweep; inverted, of the smallest to the largest x."""
    value = effect.get("ratio")
    low, high = effect.get("ratio_student_interval", (None, None))
    if inverted and value is not None:
        value = 1 / value
        low, high = (None, None) if low is None else (1 / high, 1 / low)
    n_runs = effect["n_observed"] + effect["n_censored"]
    bound = effect["ratio_is_lower_bound"] or effect["ratio_is_upper_bound"]
    return Measured(value, low, high, n_runs, "a bound: an end was censored" if bound else "")


def _lr_ratio(runs: pd.DataFrame) -> Measured:
    """Return tau at learning rate 2e-3 over that at 3e-4, among observed runs."""
    observed = runs[runs["tau_status"] == "observed"]
    logs = [np.log(observed[observed["lr"] == lr]["tau"].astype(float)) for lr in (2e-3, 3e-4)]
    if any(values.empty for values in logs):
        return Measured(None, note="an end had no transition")
    return Measured(float(np.exp(logs[0].mean() - logs[1].mean())), n_runs=sum(map(len, logs)))


def _cascade(paper: dict, runs: pd.DataFrame) -> dict[str, Answer]:
    answers = {}
    for suffix in ("", "_string"):
        onset = f"onset{suffix}"
        seen = (runs[f"{onset}_status"] == "observed") & (runs["loss_onset_status"] == "observed")
        both = runs[seen]
        lead = mean_with_interval(both[f"lead_fraction{suffix}"])
        answers[f"onset_before_loss{suffix}"] = judge_share(
            (both[onset] < both["loss_onset"]).tolist()
        )
        name = f"lead_fraction{suffix}"
        answers[name] = (lead, *judge_size(lead, paper[name], 0.0))
    return answers


def _directions(paper: dict, effects: dict) -> dict[str, Answer]:
    answers = {}
    for name, moment in (
        ("forward_slower", "tau"),
        ("forward_slower_by_character", "character_tau"),
    ):
        ours = _mean_ratio(effects[f"direction_by_{moment}"])
        answers[name] = (ours, *judge_size(ours, paper[name], 1.0))
    answers["transfer"] = _transfer(effects["transfer_by_tau"])
    ends = [run["final_ratio"] for run in effects["linear"] if "final_ratio" in run]
    share, verdict, rule = judge_share([ratio > 0.9 for ratio in ends])
    answers["linear"] = (share, verdict, f"final candidate loss above 0.9 log k; {rule}")
    return answers


def _mean_ratio(ratios: list[dict]) -> Measured:
    values = [ratio["value"] for ratio in ratios if "value" in ratio]
    if not values:
        return Measured(None)
    text = ", ".join(f"k = {r['k']}: {r['value']:.2f}" for r in ratios if "value" in r)
    mean = float(np.exp(np.mean(np.log(values))))
    return Measured(mean, n_runs=2 * sum(r["n_seeds"] for r in ratios), note=text)


def _transfer(ratios: list[dict]) -> Answer:
    rule = (
        "reproduced if the speed-up is above 1 at the largest k and below 1 at the smallest; "
        "in its direction only if it is larger at the largest k than at the smallest"
    )
    known = [ratio for ratio in ratios if "value" in ratio]
    ours = _mean_ratio(ratios)
    if len(known) < 2:
        return ours, TOO_FEW, rule
    first, last = known[0]["value"], known[-1]["value"]
    if first < 1 < last:
        return ours, REPRODUCED, rule
    return ours, OTHER_SIZE if first < last else NOT_REPRODUCED, rule
