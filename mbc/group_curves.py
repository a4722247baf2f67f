"""Whether the groups of a map are learned together or one by one (section 3.3 of the paper).

A group, see `mbc.groups`, is *solved* when at least `SOLVED` of its selectors point to the right
candidate, and *complete* when all do.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from mbc.task import generator
from mbc.transitions import Moment

SOLVED = 0.8
"""Share of its selectors at which a group counts as solved."""

FEW, MOST = 0.05, 0.8
"""The transition's width runs from fewer than the first to more than the second share of groups
solved."""

COVERAGE = 0.95
"""Coverage of the intervals that a null hypothesis gives."""


@dataclass(frozen=True)
class GroupCurvePoint:
    """How the groups stand at one checkpoint, and how they would if items were independent.

    Attributes:
        step: optimiser steps taken.
        fraction: step / tau; of a censored run, step / last step.
        mean_accuracy: share of right (B, z) over all groups.
        share_solved: share of groups with at least `SOLVED` of their selectors right.
        share_complete: share of groups with all selectors right.
        independent_share_solved: share of groups that would be solved if each of the k items of
            every group were right with probability ``mean_accuracy``, on its own.
        independent_share_complete: the same for complete groups.
        heterogeneity: variance of the group accuracies / variance of such independent items,
            p (1 - p) / k. 1 if the groups are alike, above 1 if they move on their own, about k at
            most; below 1 where items of a group exclude each other, as for a network that ignores z
            and so has one of each k right. None if every item is right, or none, or there is one
            group only.
    """

    step: int
    fraction: float
    mean_accuracy: float
    share_solved: float
    share_complete: float
    independent_share_solved: float
    independent_share_complete: float
    heterogeneity: float | None


@dataclass(frozen=True)
class GroupTransition:
    """How fast the groups follow each other, and how fast they would if each waited on its own.

    The null hypothesis: each group is solved after a waiting time of its own, exponential
    (memoryless) with the measured mean, and stays solved. A width below its interval says that the
    groups' waiting times differ by less than those; it does not exclude groups that are independent
    but all equally slow. `width_as_cv` and `heterogeneity_halfway` speak about that.

    Attributes:
        n_groups: groups followed.
        n_solved: groups solved at some checkpoint; the others' waiting times are censored.
        start: last checkpoint with fewer than `FEW` of the groups solved before ``end``, in steps.
        end: first checkpoint with more than `MOST` of the groups solved, in steps.
        width: end - start in steps; known to within the distance of checkpoints on either side.
        width_over_tau: width / tau; None if tau is censored, too.
        mean_time: mean steps until a group is solved, by maximum likelihood of the exponential:
            total time at risk / groups solved.
        width_over_mean_time: width / mean_time.
        independent_low: lower end of the interval of width / mean time under the null hypothesis,
            at the same checkpoints. None if most such runs end before their width is seen.
        independent_high: its upper end; None if it lies beyond the last checkpoint.
        collective: whether the measured width lies below that interval.
        width_as_cv: coefficient of variation of independent, normal waiting times that would give
            the measured width (the paper speaks of 0.3); at most that, as the checkpoints widen it.
        heterogeneity_halfway: heterogeneity at the checkpoint whose mean accuracy is closest to
            halfway between chance and 1.
        heterogeneity_low: lower end of the interval of heterogeneity if groups are alike.
        heterogeneity_high: its upper end.
        statement: what cannot be told, and why; empty if everything can.
    """

    n_groups: int
    n_solved: int
    start: int | None = None
    end: int | None = None
    width: int | None = None
    width_over_tau: float | None = None
    mean_time: float | None = None
    width_over_mean_time: float | None = None
    independent_low: float | None = None
    independent_high: float | None = None
    collective: bool | None = None
    width_as_cv: float | None = None
    heterogeneity_halfway: float | None = None
    heterogeneity_low: float | None = None
    heterogeneity_high: float | None = None
    statement: str = ""


def curve_point(step: int, tau: Moment, accuracies: np.ndarray, k: int) -> GroupCurvePoint:
    """Describe the groups at one checkpoint.

    Args:
        step: of the checkpoint.
        tau: waiting time of the run.
        accuracies: of `mbc.groups.group_accuracies`, [groups].
        k: selectors of a group.
    """
    mean, needed = float(accuracies.mean()), _needed(k)
    return GroupCurvePoint(
        step=step,
        fraction=step / tau.step,
        mean_accuracy=mean,
        share_solved=float(_solved(accuracies, k).mean()),
        share_complete=float((np.rint(accuracies * k) == k).mean()),
        independent_share_solved=float(stats.binom.sf(needed - 1, k, mean)),
        independent_share_complete=float(stats.binom.sf(k - 1, k, mean)),
        heterogeneity=_heterogeneity(accuracies, k),
    )


def group_transition(
    steps: list[int],
    accuracies: np.ndarray,
    k: int,
    tau: Moment,
    seed: int,
    draws: int = 2000,
) -> GroupTransition:
    """Measure the width of the groups' transition and compare it with independent groups.

    A group's waiting time ends halfway between the first checkpoint at which it is solved and the
    one before. Under the null hypothesis ``draws`` runs of as many groups are simulated and seen
    at the same checkpoints; a run that has not passed `MOST` at the last one has a width above all
    that were seen.

    Args:
        steps: of the checkpoints, rising.
        accuracies: of `mbc.groups.group_accuracies`, [checkpoints, groups].
        k: selectors of a group.
        tau: waiting time of the run.
        seed: of the simulation.
        draws: simulated runs.
    """
    solved = _solved(accuracies, k)
    n_groups, n_solved = solved.shape[1], int(solved.any(axis=0).sum())
    found: dict = _heterogeneity_halfway(accuracies, k)
    times = np.array(steps, dtype=float)
    start, end = (None if np.isnan(t) else int(t) for t in _window(times, solved.mean(axis=1)))
    mean_time = _mean_time(times, solved)
    found |= {"start": start, "end": end, "mean_time": mean_time}
    if mean_time:
        rng = generator(seed, "independent groups")
        widths = _independent_widths(times, n_groups, mean_time, draws, rng)
        tails = (1 - COVERAGE) / 2, (1 + COVERAGE) / 2
        # of infinite widths: no value between two simulated ones, which might be infinite, too
        low, high = np.quantile(widths, tails, method="lower") / mean_time
        found |= {
            "independent_low": float(low) if np.isfinite(low) else None,
            "independent_high": float(high) if np.isfinite(high) else None,
        }
    statement = _what_is_missing(start, end, mean_time, n_groups)
    if not statement:
        width, ratio = end - start, (end - start) / mean_time
        between = stats.norm.ppf(MOST) - stats.norm.ppf(FEW)
        found |= {
            "width": width,
            "width_over_tau": width / tau.step if tau.observed else None,
            "width_over_mean_time": ratio,
            "collective": bool(ratio < low),
            "width_as_cv": float(ratio / between),
        }
    return GroupTransition(n_groups, n_solved, statement=statement, **found)


def _needed(k: int) -> int:
    return math.ceil(SOLVED * k)


def _solved(accuracies: np.ndarray, k: int) -> np.ndarray:
    return np.rint(accuracies * k) >= _needed(k)


def _window(times: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return start and end of the transition of curves; NaN where they are not seen.

    The end is the first time with more than `MOST`, the start the last one before it with fewer
    than `FEW`.

    Args:
        times: of the checkpoints, [checkpoints].
        shares: of groups solved, [..., checkpoints].
    """
    most = shares > MOST
    passed = np.maximum.accumulate(most, axis=-1)
    few = (shares < FEW) & ~passed
    last_few = len(times) - 1 - few[..., ::-1].argmax(-1)
    start = np.where(few.any(-1), times[last_few], np.nan)
    end = np.where(most.any(-1), times[most.argmax(-1)], np.nan)
    return start, end


def _mean_time(times: np.ndarray, solved: np.ndarray) -> float | None:
    """Return total time at risk / groups solved; None if no group is."""
    ever = solved.any(axis=0)
    if not ever.any():
        return None
    first = solved.argmax(axis=0)
    before = np.concatenate([[0.0], times])[first]
    at_risk = np.where(ever, (before + times[first]) / 2, times[-1])
    return float(at_risk.sum() / ever.sum())


def _independent_widths(
    times: np.ndarray, n_groups: int, mean_time: float, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the widths of simulated runs [draws], infinite where the end is not seen."""
    seen = np.concatenate([[0.0], times])  # at step 0 such a group is never solved
    widths = np.empty(draws)
    for draw in range(draws):
        waiting = np.sort(rng.exponential(mean_time, size=n_groups))
        start, end = _window(seen, np.searchsorted(waiting, seen, side="right") / n_groups)
        widths[draw] = end - start
    return np.where(np.isnan(widths), np.inf, widths)


def _heterogeneity(accuracies: np.ndarray, k: int) -> float | None:
    mean = accuracies.mean()
    alike = mean * (1 - mean) / k
    if len(accuracies) == 1 or alike <= 0:
        return None
    return float(accuracies.var(ddof=1) / alike)


def _heterogeneity_halfway(accuracies: np.ndarray, k: int) -> dict[str, float | None]:
    """Return the fields of `GroupTransition` on heterogeneity.

    The interval is that of the dispersion test of binomial counts: of alike groups, (groups - 1)
    times heterogeneity is about chi-square with groups - 1 degrees of freedom.
    """
    free = accuracies.shape[1] - 1
    if free == 0:
        return {}
    halfway = np.abs(accuracies.mean(axis=1) - (1 + 1 / k) / 2).argmin()
    low, high = stats.chi2.ppf([(1 - COVERAGE) / 2, (1 + COVERAGE) / 2], free) / free
    return {
        "heterogeneity_halfway": _heterogeneity(accuracies[halfway], k),
        "heterogeneity_low": float(low),
        "heterogeneity_high": float(high),
    }


def _what_is_missing(
    start: int | None, end: int | None, mean_time: float | None, n_groups: int
) -> str:
    if not mean_time:
        return f"None of {n_groups} groups is solved at any checkpoint after step 0."
    if end is None:
        return f"At no checkpoint are more than {MOST:.0%} of {n_groups} groups solved."
    if start is None:
        return f"At no checkpoint before are fewer than {FEW:.0%} of {n_groups} groups solved."
    return ""
