"""Which number answers which claim of the paper: one short function a claim."""

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
from mbc.noise_claims import judge_noise
from mbc.runs import RANDOM_WEIGHTS

NO_RUNS: Answer = (Measured(None), NOT_RUN, "the parameters name no runs that could measure it")

R_SQUARED_MARGIN = 0.05
"""A power law fits as well as the paper's if R² is at most this much lower."""


def judge_all(
    paper: dict,
    table: pd.DataFrame,
    sweeps: dict[str, pd.DataFrame],
    scale: float,
    scaling: dict,
    effects: dict,
    mechanism: Tables,
) -> list[Claim]:
    """Return every claim of the paper's data file with its verdict, in the order of the file.

    Args:
        paper: for each claim its section, words and number.
        table: the table of runs.
        sweeps: of `mbc.runs.all_sweeps`.
        scale: factor on every n_b.
        scaling: the scaling metrics.
        effects: the metrics of the other experiments.
        mechanism: tables of what was found inside the followed runs.
    """
    transformers = table[(table["network"] == "transformer") & (table["direction"] == "backward")]
    transformers = transformers[
        (transformers["start_from"] == RANDOM_WEIGHTS) & (transformers["tau_status"] != "undefined")
    ]
    runs = transformers[transformers["fibre"] == "distinct"]
    finished = runs[runs["tau_status"] != "diverged"]
    passed = table.loc[table["tau_status"] == "observed", "run"]
    inside = {name: found[found["run"].isin(passed)] for name, found in mechanism.items()}
    answers = {
        **_plateau(paper, runs),
        **_strict_marginal(finished, transformers[transformers["fibre"] == "structured"]),
        **_scaling(paper, finished, scale, scaling),
        **judge_noise(paper, sweeps),
        **_cascade(paper, finished),
        **_directions(paper, effects),
        **judge_mechanism(paper, inside),
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
    diverged = runs["tau_status"] == "diverged"
    known = runs[~diverged].dropna(subset="plateau_ratio")
    height = mean_with_interval(known.groupby("condition")["plateau_ratio"].mean())
    early = (
        (known["plateau_reached_status"] == "observed")
        & (known["plateau_reached"] <= paper["plateau_forms_early"]["limit"])
        & (known["plateau_reached"] < known["tau"] / 2)
    )
    near = known["plateau_ratio"].between(0.9, 1.1)
    both = (near & (known["tau_status"] == "observed")).tolist()
    ignored = known["plateau_z_gap"].abs() < paper["z_gap_on_plateau"]["limit"]
    of_known = "of the runs with an evaluation on the plateau (transition.plateau_window)"
    *early_share, rule = judge_share(early.tolist())
    return {
        "plateau_height": (height, *_judge_height(height, paper["plateau_height"])),
        "plateau_forms_early": (*early_share, f"and before τ/2; {of_known}, {rule}"),
        "z_gap_on_plateau": judge_share(ignored.tolist()),
        "two_regimes": judge_share([*both, *[False] * int(diverged.sum())]),
        "marginal_first": judge_share(near.tolist()),
    }


def _judge_height(height: Measured, paper: dict) -> tuple[str, str]:
    rule = (
        f"mean over conditions: reproduced within {paper['low']:g} and {paper['high']:g}, in its "
        "direction only within 0.9 and 1.1"
    )
    if height.value is None:
        return TOO_FEW, rule
    if paper["low"] <= height.value <= paper["high"]:
        return REPRODUCED, rule
    return OTHER_SIZE if 0.9 <= height.value <= 1.1 else NOT_REPRODUCED, rule


def _strict_marginal(runs: pd.DataFrame, structured: pd.DataFrame) -> dict[str, Answer]:
    def learned(some: pd.DataFrame) -> list[bool]:
        seen = (some["marginal_status"] == "observed") & (some["onset_status"] == "observed")
        return seen.tolist()

    ours, verdict, rule = judge_share(learned(runs))
    control = learned(structured)
    note = f"{ours.note}; with structured fibres, where it is easy to learn, {sum(control)} of "
    ours = Measured(ours.value, ours.low, ours.high, ours.n_runs, f"{note}{len(control)}")
    rule = (
        "at some evaluation before the onset, joint loss near log k, mass on the fibre and B-gap "
        f"large (transition.marginal_* in params.yaml); {rule}"
    )
    return {"marginal_first_strict": (ours, verdict, rule)}


def _scaling(paper: dict, runs: pd.DataFrame, scale: float, scaling: dict) -> dict[str, Answer]:
    law = scaling["dataset_size"]
    exponent, intervals = _exponent(law)
    above = (
        "reproduced if both intervals, bootstrap and HC3 (of a fit with censored runs, its own), "
        "lie above 1, not if both lie below, else undecided"
    )
    faster = TOO_FEW
    if intervals and all(low > 1 for low, _ in intervals):
        faster = REPRODUCED
    elif intervals and all(high < 1 for _, high in intervals):
        faster = NOT_REPRODUCED
    answers = {
        "exponent": (exponent, *judge_size(exponent, paper["exponent"], 0.0)),
        "exponent_above_1": (exponent, faster, above),
        "power_law_fit": _fit_quality(paper["power_law_fit"]["value"], law),
        "threshold_robustness": _thresholds(paper["threshold_robustness"]["limit"], scaling),
        "seed_variation": _seed_variation(paper["seed_variation"], runs),
    }
    for size, fit in scaling["fixed_size"].items():
        answers[f"k_independence_{round(int(size) / scale)}"] = _independence(fit)
    return answers


def _exponent(law: dict) -> tuple[Measured, list]:
    """Return the exponent, and all intervals that there are for it."""
    if law["n_left_out"]:
        censored = law["censored"]
        low, high = censored.get("interval", (None, None))
        n_runs = censored["n_observed"] + censored["n_censored"]
        ours = Measured(censored.get("exponent"), low, high, n_runs, "with censored runs")
        return ours, [] if low is None else [(low, high)]
    low, high = law.get("bootstrap_interval", (None, None))
    ours = Measured(law.get("exponent"), low, high, law["n_runs"], law["statement"])
    return ours, [] if low is None else [(low, high), tuple(law["hc3_interval"])]


def _fit_quality(value: float, law: dict) -> Answer:
    rule = f"reproduced if R² is {value - R_SQUARED_MARGIN:g} or more"
    ours = Measured(law.get("r_squared"), n_runs=law["n_runs"])
    if ours.value is None:
        return ours, TOO_FEW, rule
    return ours, REPRODUCED if ours.value >= value - R_SQUARED_MARGIN else NOT_REPRODUCED, rule


def _independence(fit: dict) -> Answer:
    test = fit["equivalence"]
    low, high = test.get("interval", (None, None))
    note = "90% interval of the test"
    if fit["n_left_out"]:
        note = f"{fit['n_left_out']} runs without a transition are not in it"
    ours = Measured(fit.get("exponent"), low, high, fit["n_runs"], note)
    rule = (
        f"reproduced if two one-sided tests show |exponent| < {test['margin']:g} at level "
        f"{test['level']:g}; not reproduced if the interval lies wholly outside; else undecided, "
        "and also where a run had no transition"
    )
    if fit["n_left_out"]:
        return ours, TOO_FEW, rule
    if test["equivalent"]:
        return ours, REPRODUCED, rule
    outside = low is not None and (low > test["margin"] or high < -test["margin"])
    return ours, NOT_REPRODUCED if outside else TOO_FEW, rule


def _thresholds(allowed: float, scaling: dict) -> Answer:
    usual = scaling["dataset_size"].get("exponent")
    others = [fit["exponent"] for fit in scaling["thresholds"].values() if "exponent" in fit]
    rule = f"reproduced if no threshold moves the exponent by {allowed:g} or more"
    if usual is None or len(others) < 2:
        return Measured(None), TOO_FEW, rule
    moved = max(abs(exponent - usual) for exponent in others)
    ours = Measured(moved, n_runs=scaling["dataset_size"]["n_runs"])
    return ours, REPRODUCED if moved < allowed else NOT_REPRODUCED, rule


def _seed_variation(paper: dict, runs: pd.DataFrame) -> Answer:
    rule = "reproduced if the mean over conditions with 3 seeds or more lies in the paper's range"
    times = runs["tau"].astype(float).groupby(runs["condition"])
    whole = (runs["tau_status"] == "observed").groupby(runs["condition"]).all()
    variation, enough = times.std() / times.mean(), times.size() >= 3
    if not (whole & enough).any():
        return Measured(None, note="needs 3 seeds"), TOO_FEW, rule
    ours = mean_with_interval(variation[whole & enough])
    note = f"{(~whole & enough).sum()} conditions with a censored seed are not in it"
    ours = Measured(ours.value, ours.low, ours.high, ours.n_runs, note)
    inside = paper["low"] <= ours.value <= paper["high"]
    return ours, REPRODUCED if inside else OTHER_SIZE, rule


def _cascade(paper: dict, runs: pd.DataFrame) -> dict[str, Answer]:
    reached = runs[runs["loss_onset_status"] == "observed"]
    answers = {}
    for suffix in ("", "_string"):
        onset, lead = f"onset{suffix}", f"lead_fraction{suffix}"
        seen = reached[f"{onset}_status"] == "observed"
        before = seen & (reached[onset] < reached["loss_onset"])
        later = reached[onset] >= reached["loss_onset"]  # of a censored onset: certainly later
        answers[f"onset_before_loss{suffix}"] = judge_share(before[seen | later].tolist())
        ours = mean_with_interval(reached[seen].groupby("condition")[lead].mean())
        answers[lead] = (ours, *judge_size(ours, paper[lead], 0.0))
    return answers


def _directions(paper: dict, effects: dict) -> dict[str, Answer]:
    answers = {}
    for name, moment in (
        ("forward_slower", "tau"),
        ("forward_slower_by_character", "character_tau"),
    ):
        answers[name] = _slower(paper[name], effects[f"direction_by_{moment}"])
    swept = [ratio["condition"] for ratio in effects["direction_by_tau"]]
    # where several have one k, that of the sweep counts
    transfers = sorted(effects["transfer_by_tau"], key=lambda ratio: ratio["condition"] in swept)
    answers["transfer"] = _transfer(paper["transfer"]["compared"], transfers)
    ends = [run["final_ratio"] for run in effects["linear"] if "final_ratio" in run]
    share, verdict, rule = judge_share([ratio > 0.9 for ratio in ends])
    answers["linear"] = (share, verdict, f"final candidate loss above 0.9 log k; {rule}")
    return answers


def _slower(paper: dict, ratios: list[dict]) -> Answer:
    known = [ratio["value"] for ratio in ratios if "value" in ratio]
    low, high = paper["low"], paper["high"]
    rule = (
        f"by the ratio at each k: reproduced if all lie within {low:g} and {high:g} widened by a "
        "quarter, in its direction only if all are above 1, undecided if a run was censored"
    )
    ours = Measured(
        sum(known) / len(known) if known else None,
        n_runs=2 * sum(ratio["n_seeds"] for ratio in ratios),
        note=_by_k(ratios),
    )
    if not known:
        return ours, TOO_FEW, rule
    if min(known) <= 1:
        return ours, NOT_REPRODUCED, rule
    if len(known) < len(ratios):
        return ours, TOO_FEW, rule
    inside = min(known) >= low / 1.25 and max(known) <= high * 1.25
    return ours, REPRODUCED if inside else OTHER_SIZE, rule


def _transfer(compared: list[int], ratios: list[dict]) -> Answer:
    small, large = compared
    rule = (
        f"reproduced if the speed-up is above 1 at k = {large} and below 1 at k = {small}; in its "
        f"direction only if it is larger at k = {large}"
    )
    by_k = {ratio["k"]: ratio.get("value") for ratio in ratios}
    first, last = by_k.get(small), by_k.get(large)
    ours = Measured(last, n_runs=2 * sum(r["n_seeds"] for r in ratios), note=_by_k(ratios))
    if first is None or last is None:
        return ours, TOO_FEW, rule
    if first < 1 < last:
        return ours, REPRODUCED, rule
    return ours, OTHER_SIZE if first < last else NOT_REPRODUCED, rule


def _by_k(ratios: list[dict]) -> str:
    return ", ".join(
        f"k = {ratio['k']}: {ratio['value']:.2f}"
        if "value" in ratio
        else f"k = {ratio['k']}: no transition in a run"
        for ratio in ratios
    )
