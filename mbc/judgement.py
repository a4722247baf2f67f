"""Which number answers which claim of the paper: one short function a claim."""

from dataclasses import replace

import pandas as pd
from scipy import stats

from mbc.cascade_claims import judge_cascade
from mbc.claims import (
    CUT_SHORT,
    NO_RUNS,
    NOT_REPRODUCED,
    NOT_RUN,
    OTHER_SIZE,
    REPRODUCED,
    TOLERANCE,
    TOO_FEW,
    Answer,
    Claim,
    Measured,
    judge_size,
    mean_with_interval,
)
from mbc.direction_claims import judge_directions
from mbc.mechanism_claims import Tables, judge_mechanism
from mbc.noise_claims import judge_noise
from mbc.plateau_claims import judge_plateau
from mbc.runs import RANDOM_WEIGHTS, moment_text

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
        **judge_plateau(
            paper,
            runs,
            transformers[transformers["fibre"] == "structured"],
            sweeps["dataset_size"],
        ),
        **_scaling(paper, finished, scale, scaling),
        **judge_noise(paper, sweeps, effects),
        **judge_cascade(paper, finished, sweeps["dataset_size"]),
        **judge_directions(paper, effects),
        **judge_mechanism(paper, inside, table.set_index("run")),
        "waiting_time": _waiting_time(paper["waiting_time"], table, sweeps["schedule"], scale),
    }
    return [
        Claim(
            name,
            entry["section"],
            entry["claim"],
            entry.get("added", False),
            entry.get("remark", ""),
            entry.get("value"),
            (entry["low"], entry["high"]) if "low" in entry else None,
            *answers.get(name, NO_RUNS),
        )
        for name, entry in paper.items()
    ]


def _waiting_time(
    paper: dict, table: pd.DataFrame, by_schedule: pd.DataFrame, scale: float
) -> Answer:
    rule = (
        "only at scale 1: reproduced within the paper's values at its several places, of another "
        "size up to a factor of 2 beyond them, undecided if a run had no transition"
    )
    base = table[table["condition"] == "base"]
    if scale != 1 or base.empty:
        return Measured(None, note="the paper's is for scale 1"), NOT_RUN, rule
    if (base["tau_status"] != "observed").any():
        note = "; ".join(f"{run['run']}: {moment_text(run, 'tau')}" for _, run in base.iterrows())
        return Measured(None, note=note), CUT_SHORT, rule
    others = by_schedule[by_schedule["condition"] != "base"]
    seeds, cosine = (
        ", ".join(f"{run['run']} {moment_text(run, 'tau')}" for _, run in runs.iterrows())
        for runs in (base, others)
    )
    notes = ["single run" if len(base) == 1 else seeds]
    notes += [f"by the cosine schedule {cosine}"] if cosine else []
    mean = stats.gmean(base["tau"].astype(float))
    ours = Measured(float(mean), n_runs=len(base), note="; ".join(notes))
    if paper["low"] <= ours.value <= paper["high"]:
        return ours, REPRODUCED, rule
    near = paper["low"] / 2 <= ours.value <= paper["high"] * 2
    return ours, OTHER_SIZE if near else NOT_REPRODUCED, rule


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
        for name in paper:
            kind, _, nominal = name.rpartition("_")
            if kind == "k_independence" and abs(int(size) / scale / int(nominal) - 1) < 0.01:
                answers[name] = _independence(fit, f"at D = {size}")
    return answers


def _exponent(law: dict) -> tuple[Measured, list]:
    """Return the exponent, and all intervals that there are for it."""
    if law["censored"]["n_censored"]:
        censored = law["censored"]
        low, high = censored.get("interval", (None, None))
        n_runs = censored["n_observed"] + censored["n_censored"]
        ours = Measured(censored.get("exponent"), low, high, n_runs, "with censored runs")
        return ours, [] if low is None else [(low, high)]
    low, high = law.get("bootstrap_interval", (None, None))
    ours = Measured(law.get("exponent"), low, high, law["n_runs"], law["statement"])
    return ours, [] if low is None else [(low, high), tuple(law["hc3_interval"])]


def _fit_quality(value: float, law: dict) -> Answer:
    rule = f"reproduced if R² is {value - R_SQUARED_MARGIN:g} or more, undecided if a run had no "
    rule += "transition"
    ours = Measured(law.get("r_squared"), n_runs=law["n_runs"], note=law["statement"])
    if law["n_left_out"]:
        return ours, CUT_SHORT, rule
    if ours.value is None:
        return ours, TOO_FEW, rule
    return ours, REPRODUCED if ours.value >= value - R_SQUARED_MARGIN else NOT_REPRODUCED, rule


def _independence(fit: dict, where: str) -> Answer:
    test = fit["equivalence"]
    low, high = test.get("interval", (None, None))
    note = f"{where}, 90% interval of the test"
    if fit["n_left_out"]:
        note = f"{where}; {fit['n_left_out']} runs without a transition are not in it"
    ours = Measured(fit.get("exponent"), low, high, fit["n_runs"], note)
    rule = (
        f"reproduced if two one-sided tests show |exponent| < {test['margin']:g} at level "
        f"{test['level']:g}; not reproduced if the interval lies wholly outside; else undecided, "
        "and also where a run had no transition"
    )
    if fit["n_left_out"]:
        return ours, CUT_SHORT, rule
    if test["equivalent"]:
        return ours, REPRODUCED, rule
    outside = low is not None and (low > test["margin"] or high < -test["margin"])
    return ours, NOT_REPRODUCED if outside else TOO_FEW, rule


def _thresholds(allowed: float, scaling: dict) -> Answer:
    fits = scaling["thresholds"].values()
    exponents = [fit["exponent"] for fit in fits if "exponent" in fit]
    rule = (
        f"reproduced if the largest exponent is less than {allowed:g} above the smallest, not "
        f"reproduced if it is {TOLERANCE:.0%} more than that, else undecided, and also if a run "
        "had no transition by some threshold"
    )
    if len(exponents) < 2:
        return Measured(None), TOO_FEW, rule
    left_out = max(fit["n_left_out"] for fit in fits)
    note = f"{left_out} runs without a transition are not in it" if left_out else ""
    moved = max(exponents) - min(exponents)
    ours = Measured(moved, n_runs=scaling["dataset_size"]["n_runs"], note=note)
    if left_out:
        return ours, CUT_SHORT, rule
    if moved < allowed:
        return ours, REPRODUCED, rule
    return ours, NOT_REPRODUCED if moved > allowed * (1 + TOLERANCE) else TOO_FEW, rule


def _seed_variation(paper: dict, runs: pd.DataFrame) -> Answer:
    rule = (
        "reproduced if the mean over conditions with 3 seeds or more lies in the paper's range, of "
        "another size outside it; undecided where a seed of each had no transition"
    )
    times = runs["tau"].astype(float).groupby(runs["condition"])
    whole = (runs["tau_status"] == "observed").groupby(runs["condition"]).all()
    variation, enough = times.std() / times.mean(), times.size() >= 3
    if not enough.any():
        return Measured(None, note="needs 3 seeds"), TOO_FEW, rule
    if not (whole & enough).any():
        return Measured(None, note="a seed of each had no transition"), CUT_SHORT, rule
    ours = mean_with_interval(variation[whole & enough], int(times.size()[whole & enough].sum()))
    if (~whole & enough).any():
        note = f"{(~whole & enough).sum()} conditions with a censored seed are not in it"
        ours = replace(ours, note=note)
    inside = paper["low"] <= ours.value <= paper["high"]
    return ours, REPRODUCED if inside else OTHER_SIZE, rule
