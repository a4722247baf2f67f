"""Which number answers which claim about gradient noise (section 3.4 of the paper)."""

import math

import numpy as np
import pandas as pd

from mbc.claims import (
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    TOO_FEW,
    Answer,
    Measured,
    judge_size,
)
from mbc.settings import NOISE_SWEEPS
from mbc.trends import ratio_student_interval

COMPARED = {
    "batch_size_examples": ("batch_size", "tau_examples"),
    "batch_size_steps": ("batch_size", "tau"),
    "learning_rate_ratio": ("learning_rate", "tau"),
    "label_noise": ("label_noise", "tau"),
}
"""For each claim about a ratio its sweep and the column of the waiting time."""


def judge_noise(paper: dict, sweeps: dict[str, pd.DataFrame]) -> dict[str, Answer]:
    """Return answers to the claims of section 3.4 by name.

    Args:
        paper: for each claim its section, words and number, and which settings it compares.
        sweeps: of `mbc.runs.all_sweeps`.
    """
    answers = {}
    for name, (sweep, response) in COMPARED.items():
        ours = ratio_between(sweeps[sweep], NOISE_SWEEPS[sweep], paper[name]["compared"], response)
        verdict, rule = judge_size(ours, paper[name], 1.0)
        answers[name] = (ours, NOT_RUN if ours.n_runs == 0 else verdict, rule)
    rates = sweeps["learning_rate"]
    answers["learning_rate_monotone"] = _monotone(rates, "lr")
    hot = rates[np.isclose(rates["lr"], paper["learning_rate_limit"]["limit"])]
    n_passed = int((hot["tau_status"] == "observed").sum())
    answers["learning_rate_limit"] = (
        Measured(float(n_passed), n_runs=len(hot), note="runs with a transition"),
        NOT_RUN if hot.empty else REPRODUCED if n_passed == 0 else NOT_REPRODUCED,
        "reproduced if no run at this rate had a transition within its step budget",
    )
    return answers


def ratio_between(runs: pd.DataFrame, x: str, compared: list[float], response: str) -> Measured:
    """Return the geometric mean of the waiting time at one x over that at another.

    With several seeds at both it has Welch's interval for log waiting times. Where an end has
    censored runs, which waited longer than their last step, it is a bound.

    Args:
        runs: of a sweep.
        x: the column that varies.
        compared: the x of the numerator and of the denominator.
        response: column of the waiting time, in steps or in examples.
    """
    ends = [
        runs[np.isclose(runs[x], value) & runs["tau_status"].isin(["observed", "censored"])]
        for value in compared
    ]
    if any(end.empty for end in ends):
        return Measured(None, note=f"no run at {x} {compared[0]:g} or {compared[1]:g}")
    n_runs = sum(map(len, ends))
    logs = [np.log(end[response].to_numpy(float)) for end in ends]
    late = [bool((end["tau_status"] == "censored").any()) for end in ends]
    if all(late):
        return Measured(None, n_runs=n_runs, note="no transition at either end")
    value = math.exp(logs[0].mean() - logs[1].mean())
    if any(late):
        bound = "at least" if late[0] else "at most"
        return Measured(value, n_runs=n_runs, note="an end was censored", bound=bound)
    low, high = ratio_student_interval(*logs, confidence=0.95) or (None, None)
    return Measured(value, low, high, n_runs)


def _monotone(runs: pd.DataFrame, x: str) -> Answer:
    """Judge whether the waiting time rises from each x to the next.

    A waiting time is known to lie between two evaluations, one of a censored run only from below:
    a rise or a fall counts where these ranges, averaged over seeds, do not overlap.
    """
    rule = (
        "reproduced if τ rises from each rate to the next by more than the spacing of evaluations, "
        "not reproduced if it falls somewhere, else undecided"
    )
    known = runs[runs["tau_status"].isin(["observed", "censored"])]
    low, high = [], []
    for _, seeds in known.groupby(x):
        times = seeds[["tau_after", "tau"]].to_numpy(float).clip(min=1)
        means = np.exp(np.log(times).mean(axis=0))
        low.append(means[0])
        high.append(means[1] if (seeds["tau_status"] == "observed").all() else math.inf)
    n_steps = len(low) - 1
    rises = sum(b > a for a, b in zip(high, low[1:], strict=False))
    falls = sum(b < a for a, b in zip(low, high[1:], strict=False))
    note = f"{rises} of {n_steps} steps up, {falls} down"
    if n_steps < 2:
        return Measured(None, n_runs=len(known)), TOO_FEW if n_steps == 1 else NOT_RUN, rule
    ours = Measured(rises / n_steps, n_runs=len(known), note=note)
    if falls:
        return ours, NOT_REPRODUCED, rule
    return ours, REPRODUCED if rises == n_steps else TOO_FEW, rule
