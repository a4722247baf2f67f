"""The paper's claims, each judged by a stated rule from measured numbers.

A verdict is one of `VERDICTS` and follows from the numbers alone. Claims about the marginal are
judged twice: by the paper's candidate loss, and by what would show that P(A|B) has been learned.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

REPRODUCED = "reproduced"
OTHER_SIZE = "same direction, other size"
NOT_REPRODUCED = "not reproduced"
TOO_FEW = "undecided: too few runs"
NOT_RUN = "not run"
VERDICTS = (REPRODUCED, OTHER_SIZE, NOT_REPRODUCED, TOO_FEW, NOT_RUN)

TOLERANCE = 0.25
"""A single number without interval counts as the paper's if it is within this share of it."""

INTERVAL_TOLERANCE = 0.5
"""A number whose interval holds the paper's counts as the paper's if it is within this share."""

NEEDED_SHARE = 0.9
"""A claim about every run counts as reproduced if it holds in this share of them, else in more than
half of them only in its direction."""


@dataclass(frozen=True)
class Measured:
    """One number of ours.

    Attributes:
        value: the number; None if it could not be estimated.
        low: lower end of its 95% interval; None without one.
        high: upper end.
        n_runs: runs behind it.
        note: what else must be said.
        bound: whether the true number is at least, or at most, the value, because runs were
            censored; None if it is an estimate.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n_runs: int = 0
    note: str = ""
    bound: Literal["at least", "at most"] | None = None


Answer = tuple[Measured, str, str]
"""What we measured, the verdict, and the rule that gave it."""


@dataclass(frozen=True)
class Claim:
    """A claim with its verdict.

    Attributes:
        name: key in the data file of the paper's values.
        section: where the paper says it.
        claim: what it says.
        paper: the paper's number; None if it gives none.
        ours: our number.
        verdict: one of `VERDICTS`.
        rule: how the verdict follows from the numbers.
    """

    name: str
    section: str
    claim: str
    paper: float | None
    ours: Measured
    verdict: str
    rule: str


def judge_size(ours: Measured, paper: dict, neutral: float) -> tuple[str, str]:
    """Judge a number whose size the paper gives.

    Args:
        ours: our number.
        paper: ``value``, and ``low`` and ``high`` where the paper gives a spread.
        neutral: the value that would mean no effect (1 for a ratio, 0 for an exponent).
    """
    low, high = paper.get("low"), paper.get("high")
    value = paper.get("value", None if low is None else math.sqrt(low * high))
    rule = (
        "reproduced if the paper's range holds our number, or our interval holds the paper's and "
        f"ours is within {INTERVAL_TOLERANCE:.0%} of it, or, without range and interval, within "
        f"{TOLERANCE:.0%}; undecided if our interval holds both the paper's number and {neutral:g} "
        "(no effect), or if a bound, from censored runs, leaves it open; else in its direction if "
        f"on the paper's side of {neutral:g}"
    )
    if ours.value is None:
        return TOO_FEW, rule
    same_side = (ours.value - neutral) * (value - neutral) > 0
    if ours.bound is not None:
        return _judge_bound(ours, max(value, high or value), neutral), rule
    covered = ours.low is not None and ours.low <= value <= ours.high
    if covered and ours.low <= neutral <= ours.high:
        return TOO_FEW, rule
    inside = low is not None and low <= ours.value <= high
    off = abs(ours.value / value - 1)
    near = ours.low is None and low is None and off <= TOLERANCE
    if inside or near or (covered and off <= INTERVAL_TOLERANCE):
        return REPRODUCED, rule
    if covered:
        return TOO_FEW, rule
    return (OTHER_SIZE if same_side else NOT_REPRODUCED), rule


def _judge_bound(ours: Measured, paper: float, neutral: float) -> str:
    """Judge a bound on a number that the paper puts above ``neutral``."""
    if ours.bound == "at least" and ours.value > max(neutral, paper * (1 + TOLERANCE)):
        return OTHER_SIZE
    if ours.bound == "at most" and ours.value < neutral:
        return NOT_REPRODUCED
    return TOO_FEW


def judge_share(holds: list[bool]) -> tuple[Measured, str, str]:
    """Judge a claim about every run by the share of runs in which it holds.

    Returns:
        The share with its Clopper-Pearson interval, the verdict and the rule.
    """
    rule = (
        f"share of runs in which it holds: reproduced from {NEEDED_SHARE:.0%}, in its direction "
        "only above 50%"
    )
    n = len(holds)
    if n == 0:
        return Measured(None), NOT_RUN, rule
    share = sum(holds) / n
    interval = stats.binomtest(sum(holds), n).proportion_ci(method="exact")
    note = "single run" if n == 1 else f"{sum(holds)} of {n} runs"
    ours = Measured(share, float(interval.low), float(interval.high), n, note)
    if share >= NEEDED_SHARE:
        return ours, REPRODUCED, rule
    return ours, OTHER_SIZE if share > 0.5 else NOT_REPRODUCED, rule


def mean_with_interval(values: pd.Series) -> Measured:
    """Return the mean with Student's 95% interval; none for fewer than three values.

    Values of several seeds of one condition are not independent: average them before.
    """
    values = values.dropna().to_numpy(float)
    n = len(values)
    if n == 0:
        return Measured(None)
    if n < 3:
        note = "single run" if n == 1 else "two runs"
        return Measured(float(values.mean()), n_runs=n, note=note)
    half = stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)
    return Measured(
        float(values.mean()), float(values.mean() - half), float(values.mean() + half), n
    )
