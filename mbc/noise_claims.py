"""Which number answers which claim about gradient noise (section 3.4 of the paper)."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd

from mbc.censoring import observed_and_censored
from mbc.claims import (
    CUT_SHORT,
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    TOLERANCE,
    TOO_FEW,
    Answer,
    Measured,
    judge_size,
)
from mbc.settings import NOISE_SWEEPS
from mbc.trends import blocked_ratio

COMPARED = {
    "batch_size_examples": ("batch_size", "tau_examples"),
    "batch_size_steps": ("batch_size", "tau"),
    "learning_rate_ratio": ("learning_rate", "tau"),
    "label_noise": ("label_noise", "tau"),
    "label_noise_elbow": ("label_noise", "tau"),
}
"""For each claim about a ratio its sweep and the column of the waiting time."""


LEVEL = 0.05
"""Of tests."""


def judge_noise(paper: dict, sweeps: dict[str, pd.DataFrame], effects: dict) -> dict[str, Answer]:
    """Return answers to the claims of section 3.4 by name.

    Args:
        paper: for each claim its section, words and number, and which settings it compares.
        sweeps: of `mbc.runs.all_sweeps`.
        effects: the metrics of the other experiments.
    """
    answers = {"batch_size_trend": _falls(effects["batch_size"]["examples"])}
    for name, (sweep, response) in COMPARED.items():
        ours = ratio_between(sweeps[sweep], NOISE_SWEEPS[sweep], paper[name]["compared"], response)
        verdict, rule = judge_size(ours, paper[name], 1.0)
        if ours.value is None:
            verdict = CUT_SHORT if ours.n_runs else NOT_RUN
        answers[name] = (ours, verdict, rule)
    rates = sweeps["learning_rate"]
    answers["learning_rate_monotone"] = _monotone(rates, "lr", effects["learning_rate"]["steps"])
    hot = rates[np.isclose(rates["lr"], paper["learning_rate_limit"]["limit"])]
    answers["learning_rate_limit"] = _limit(hot)
    return answers


def _falls(trend: dict) -> Answer:
    """Judge a trend by the test of `mbc.trends.monotone_effect`."""
    rule = (
        f"reproduced if a permutation test finds that τ falls with it (p < {LEVEL:g}), not "
        "reproduced if it rises, else undecided"
    )
    if trend.get("concordance") is None:
        return Measured(None, note=trend["statement"]), TOO_FEW, rule
    n_runs = trend["n_observed"] + trend["n_censored"]
    ours = Measured(trend["concordance"], n_runs=n_runs, note=_concordance(trend))
    if trend["p_value"] >= LEVEL:
        return ours, TOO_FEW, rule
    return ours, REPRODUCED if ours.value < 0 else NOT_REPRODUCED, rule


def _concordance(trend: dict) -> str:
    return f"concordance over all runs {trend['concordance']:+.2f}, p = {trend['p_value']:.2g}"


def _limit(hot: pd.DataFrame) -> Answer:
    """Judge whether the runs at one learning rate stay on their plateau."""
    rule = (
        "reproduced if no run at this rate had a transition or began to leave log k within its "
        "step budget; undecided if one was on its way when the budget ended"
    )
    if hot.empty:
        return Measured(None), NOT_RUN, rule
    passed = hot["tau_status"] == "observed"
    leaving = ~passed & (hot["loss_onset_status"] == "observed")
    ends = [f"{run['final_ratio']:.2f} log k at {run['last_step']}" for _, run in hot.iterrows()]
    note = f"runs with a transition; candidate loss at the end {', '.join(ends)}"
    ours = Measured(float(passed.sum()), n_runs=len(hot), note=note)
    if passed.any():
        return ours, NOT_REPRODUCED, rule
    return ours, CUT_SHORT if leaving.any() else REPRODUCED, rule


def ratio_between(runs: pd.DataFrame, x: str, compared: list[float], response: str) -> Measured:
    """Return the waiting time at one x over that at another.

    With several seeds it is that of `mbc.trends.blocked_ratio` with its interval, else that of
    the geometric means. Where an end has censored runs, which waited longer than their last step,
    it is a bound.

    Args:
        runs: of a sweep.
        x: the column that varies.
        compared: the x of the numerator and of the denominator.
        response: column of the waiting time, in steps or in examples.
    """
    known, _ = observed_and_censored(runs, response, x)
    ends = [known[np.isclose(known["x"], value)] for value in compared]
    if any(end.empty for end in ends):
        return Measured(None, note=f"no run at {x} {compared[0]:g} or {compared[1]:g}")
    n_runs = sum(map(len, ends))
    late = [not end["observed"].all() for end in ends]
    if all(late):
        return Measured(None, n_runs=n_runs, note="no transition at either end")
    value = math.exp(np.subtract(*[np.log(end["response"]).mean() for end in ends]))
    if any(late):
        bound = "at least" if late[0] else "at most"
        both = pd.concat(ends)
        ended = runs.loc[both.index[~both["observed"]], "last_step"].max()
        note = f"a run had no transition by step {ended:.0f}"
        return Measured(value, n_runs=n_runs, note=note, bound=bound)
    single = [f"{x} {value:g}" for value, end in zip(compared, ends, strict=True) if len(end) == 1]
    note = f"single run at {' and '.join(single)}" if single else ""
    settings = [end["x"].iloc[0] for end in ends]
    found = blocked_ratio(known.assign(seed=runs["seed"]), *settings, confidence=0.95)
    if found is None:
        return Measured(value, n_runs=n_runs, note=note)
    return Measured(found[0], *found[1], n_runs, note)


def _monotone(runs: pd.DataFrame, x: str, trend: dict) -> Answer:
    """Judge whether the waiting time rises from each x to the next.

    A waiting time is known to lie between two evaluations, one of a censored run only from below:
    a rise or a fall counts where these ranges, averaged over seeds, do not overlap. One that rests
    on fewer than three runs at either end must be one by more than `TOLERANCE`, too.
    """
    rule = (
        "reproduced if τ rises from each rate to the next, not reproduced if it falls somewhere, "
        "by more than the spacing of evaluations and, from or to fewer than 3 runs, by more than "
        f"{TOLERANCE:.0%}; else undecided"
    )
    known = runs[runs["tau_status"].isin(["observed", "censored"])]
    low, high, few = [], [], []
    for _, seeds in known.groupby(x):
        times = seeds[["tau_after", "tau"]].to_numpy(float).clip(min=1)
        means = np.exp(np.log(times).mean(axis=0))
        few.append(len(seeds) < 3)
        low.append(means[0])
        high.append(means[1] if (seeds["tau_status"] == "observed").all() else math.inf)
    n_steps = len(low) - 1
    factors = [1 + TOLERANCE if a or b else 1.0 for a, b in pairwise(few)]
    rises = sum(a * f < b for a, b, f in zip(high, low[1:], factors, strict=False))
    falls = sum(b * f < a for a, b, f in zip(low, high[1:], factors, strict=False))
    note = f"{rises} of {n_steps} steps up, {falls} down"
    if trend.get("concordance") is not None:
        note += f"; {_concordance(trend)}"
    if n_steps < 2:
        return Measured(None, n_runs=len(known)), TOO_FEW if n_steps == 1 else NOT_RUN, rule
    ours = Measured(rises / n_steps, n_runs=len(known), note=note)
    if falls:
        return ours, NOT_REPRODUCED, rule
    return ours, REPRODUCED if rises == n_steps else TOO_FEW, rule
