"""The paper's claims, each judged by a stated rule from measured numbers.

A verdict is one of `VERDICTS` and follows from the numbers alone. Claims about the marginal are
judged twice: by the paper's candidate loss, and by what would show that P(A|B) has been learned.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

REPRODUCED = "reproduced"
OTHER_SIZE = "same direction, other size"
NOT_REPRODUCED = "not reproduced"
TOO_FEW = "undecided: too few runs"
CUT_SHORT = "undecided: runs ended too early"
OPEN = "undecided: the measure does not tell"
NOT_RUN = "not run"
VERDICTS = (REPRODUCED, OTHER_SIZE, NOT_REPRODUCED, TOO_FEW, CUT_SHORT, OPEN, NOT_RUN)
"""What is undecided says what would decide it: more seeds, longer runs, or another measure."""

TOLERANCE = 0.25
"""A number without interval, or whose interval holds the paper's, counts as the paper's if it is
within this share of it. A ratio of single runs this close to 1 shows no effect: waiting times vary
as much between seeds (appendix C of the paper)."""

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
        is_share: whether it is the share of runs in which something holds.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n_runs: int = 0
    note: str = ""
    bound: Literal["at least", "at most"] | None = None
    is_share: bool = False


Answer = tuple[Measured, str, str]
"""What we measured, the verdict, and the rule that gave it."""


NO_RUNS: Answer = (Measured(None), NOT_RUN, "the parameters name no runs that could measure it")


@dataclass(frozen=True)
class Claim:
    """A claim with its verdict.

    Attributes:
        name: key in the data file of the paper's values.
        section: where the paper says it.
        claim: what it says.
        added: whether it is not the paper's own, but another reading of one of its claims, or a
            test that it proposes.
        remark: what must be known to compare with it; empty if nothing.
        paper: the paper's number; None if it gives none.
        paper_range: the two ends of its own interval or spread; None if it gives none.
        ours: our number.
        verdict: one of `VERDICTS`.
        rule: how the verdict follows from the numbers.
    """

    name: str
    section: str
    claim: str
    added: bool
    remark: str
    paper: float | None
    paper_range: tuple[float, float] | None
    ours: Measured
    verdict: str
    rule: str


def number_text(value: float) -> str:
    """Return a number for people, to three digits and never as a power of ten above 1."""
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


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
        "reproduced if the paper's range holds our number, or our interval holds the paper's, or "
        f"there is neither, and ours is within {TOLERANCE:.0%} of it; undecided if our "
        f"interval holds both the paper's number and {neutral:g} (no effect) or is too wide, if a "
        "bound, from censored runs, leaves it open, or if a ratio of single runs is within "
        f"{TOLERANCE:.0%} of 1; else in its direction if on the paper's side of {neutral:g} and no "
        "interval holds that"
    )
    if ours.value is None:
        return TOO_FEW, rule
    if ours.bound is not None:
        return _judge_bound(ours, max(value, high or value), neutral), rule
    inside = low is not None and low <= ours.value <= high
    near = abs(ours.value / value - 1) <= TOLERANCE
    if ours.low is None:
        if inside or (near and low is None):
            return REPRODUCED, rule
        if neutral > 0 and 1 / (1 + TOLERANCE) < ours.value / neutral < 1 + TOLERANCE:
            return TOO_FEW, rule
    else:
        covered = ours.low <= value <= ours.high
        without_effect = ours.low <= neutral <= ours.high
        if covered and without_effect:
            return TOO_FEW, rule
        if inside or (covered and near):
            return REPRODUCED, rule
        if covered:
            return TOO_FEW, rule
        if without_effect:
            return NOT_REPRODUCED, rule
    same_side = (ours.value - neutral) * (value - neutral) > 0
    return (OTHER_SIZE if same_side else NOT_REPRODUCED), rule


def _judge_bound(ours: Measured, paper: float, neutral: float) -> str:
    """Judge a bound on a number that the paper puts above ``neutral``."""
    if ours.bound == "at least" and ours.value > max(neutral, paper * (1 + TOLERANCE)):
        return OTHER_SIZE
    if ours.bound == "at most" and ours.value < neutral:
        return NOT_REPRODUCED
    return CUT_SHORT


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
    ours = Measured(share, float(interval.low), float(interval.high), n, note, is_share=True)
    if share >= NEEDED_SHARE:
        return ours, REPRODUCED, rule
    return ours, OTHER_SIZE if share > 0.5 else NOT_REPRODUCED, rule


def share_of(holds: Iterable, criterion: str) -> Answer:
    """Judge by `judge_share` and put into words what has to hold, and of which runs."""
    ours, verdict, rule = judge_share([bool(value) for value in holds])
    return ours, verdict, f"{criterion}; {rule}"


def mean_with_interval(values: pd.Series, n_runs: int | None = None) -> Measured:
    """Return the mean with Student's 95% interval; none for fewer than three values.

    Args:
        values: one for each condition: several seeds of one are not independent.
        n_runs: runs behind them, if some conditions have several.
    """
    values = values.dropna().to_numpy(float)
    n = len(values)
    n_runs = n if n_runs is None else n_runs
    if n == 0:
        return Measured(None)
    mean = float(values.mean())
    if n < 3:
        both = " and ".join(f"{value:.3g}" for value in values)
        note = "single run" if n_runs == 1 else "one condition" if n == 1 else both
        return Measured(mean, n_runs=n_runs, note=note)
    half = float(stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return Measured(mean, mean - half, mean + half, n_runs)
