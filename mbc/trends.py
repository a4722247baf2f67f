"""Whether the waiting time rises or falls along a sweep of a quantity, and by how much.

For quantities without a law, such as the learning rate, the batch size or the label noise: only
the order of the waiting times is used, and the ratio of the ends.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import statsmodels.api as sm

from mbc.censoring import observed_and_censored
from mbc.scaling import MINIMUM_POINTS, Interval

EXACT_RUNS = 8
"""Up to so many runs all orderings are counted (40 320), with more they are drawn."""

EXACT_SPREAD = 1e-20
"""Variance of log responses below which they do not differ but for rounding."""


@dataclass(frozen=True)
class MonotoneEffect:
    """Whether the response, a waiting time in some unit, depends on x in one direction.

    Attributes:
        n_observed: runs with a transition.
        n_censored: runs known to be later than their last step.
        n_left_out: diverged, undefined or unusable runs.
        n_points: different values of x.
        concordance: of the pairs of runs with different x and known order, the share in which the
            larger x waits longer minus the share in which it waits less: -1 to 1. It is Kendall's
            tau if nothing is equal or censored (Goodman and Kruskal 1954 otherwise).
        p_value: two-sided, of a permutation test of no dependence on x.
        p_value_is_exact: whether all orderings were counted.
        smallest_p_value: the least that these runs could have given; None if not counted.
        monotone: "rising", "falling" or "neither", by the geometric means at successive x.
        ratio: response at the largest x over that at the smallest, see `blocked_ratio`; of single
            runs, and where an end has censored ones, that of the geometric means.
        ratio_interval: of `blocked_ratio`; None where there is none.
        ratio_is_lower_bound: the largest x has censored runs, entered with their last step.
        ratio_is_upper_bound: the smallest x has.
        largest_over_smallest_response: largest geometric mean over the smallest, at whatever x.
        largest_over_smallest_is_lower_bound: some x has censored runs.
        statement: what the numbers cannot tell; empty if there is nothing to say.
    """

    n_observed: int
    n_censored: int
    n_left_out: int
    n_points: int
    concordance: float | None = None
    p_value: float | None = None
    p_value_is_exact: bool = False
    smallest_p_value: float | None = None
    monotone: str | None = None
    ratio: float | None = None
    ratio_interval: Interval | None = None
    ratio_is_lower_bound: bool = False
    ratio_is_upper_bound: bool = False
    largest_over_smallest_response: float | None = None
    largest_over_smallest_is_lower_bound: bool = False
    statement: str = ""


def monotone_effect(
    runs: pd.DataFrame,
    x: str,
    *,
    response: str = "tau",
    confidence: float,
    resamples: int,
    seed: int,
) -> MonotoneEffect:
    """Test whether the waiting time depends on x in one direction, and measure by how much.

    A pair of runs counts if it is known which of the two waits longer: a censored run waits longer
    than one that was observed at or before its last step (Harrell et al. 1982). The permutation
    test takes runs as exchangeable if x has no effect, seeds as well as conditions, and so asks
    for the same last step at every x.

    Args:
        runs: columns x, response, seed, tau_status.
        x: the column of the quantity; any finite number, 0 included.
        response: the column of the waiting time, in steps or in examples.
        confidence: coverage of the interval of the ratio, such as 0.95.
        resamples: permutations, if they are drawn.
        seed: of the permutations.
    """
    used, n_left_out = observed_and_censored(runs, response, x)
    used = used.assign(seed=runs["seed"]).sort_values(["x", "response"])
    ends = sorted(used["x"].unique())
    n_points, n_observed = len(ends), int(used["observed"].sum())
    results = {
        "n_observed": n_observed,
        "n_censored": len(used) - n_observed,
        "n_left_out": n_left_out,
        "n_points": n_points,
    }
    if n_points < 2:
        reason = f"Not estimable: {n_observed} transitions at {n_points} {x}."
        return MonotoneEffect(**results, statement=reason)
    sizes, sizes_say = _sizes(used, confidence)
    if n_points < MINIMUM_POINTS:
        trend, trend_says = {}, f"Only {n_points} different {x}: no direction is tested."
    else:
        trend, trend_says = _trend(used, resamples, np.random.default_rng(seed))
    statement = " ".join(part for part in (trend_says, sizes_say) if part)
    return MonotoneEffect(**results, **trend, **sizes, statement=statement)


def _trend(used: pd.DataFrame, resamples: int, rng: np.random.Generator) -> tuple[dict, str]:
    """Return direction, concordance and p-value, and what to say about them."""
    result = {"monotone": _direction(_means(used))}
    x, order = used["x"].to_numpy(), _known_order(used)
    first, second = np.triu_indices(len(x), 1)
    known = order[first, second]  # of each pair: 1 if its second run waits longer
    larger = np.sign(x[second] - x[first])
    n_pairs = int(np.abs(known * larger).sum())
    if n_pairs == 0:
        return result, "No pair of runs at different x has a known order."
    exact = len(x) <= EXACT_RUNS
    if exact:
        orderings = np.array(list(itertools.permutations(range(len(x)))))
    else:
        orderings = rng.permuted(np.tile(np.arange(len(x)), (resamples, 1)), axis=1)
    score = int(known @ larger)
    drawn = np.zeros(len(orderings), dtype=int)
    for i, j, sign in zip(first, second, known, strict=True):  # pair by pair: little memory
        if sign:
            drawn += sign * np.sign(x[orderings[:, j]] - x[orderings[:, i]]).astype(int)
    as_extreme = int((np.abs(drawn) >= abs(score)).sum())
    # Of drawn orderings the one seen is one more (Phipson and Smyth 2010): never a p-value of 0.
    p_value = as_extreme / len(drawn) if exact else (as_extreme + 1) / (len(drawn) + 1)
    result |= {"concordance": score / n_pairs, "p_value": p_value, "p_value_is_exact": exact}
    if exact:
        result["smallest_p_value"] = float((np.abs(drawn) == np.abs(drawn).max()).mean())
    return result, ""


def _known_order(used: pd.DataFrame) -> np.ndarray:
    """Return for runs [i, j]: 1 if j waits longer than i, -1 if less, 0 if equal or not known."""
    time, observed = used["response"].to_numpy(), used["observed"].to_numpy(bool)
    both = observed[:, None] & observed
    only_first = observed[:, None] & ~observed
    longer = (both & (time > time[:, None])) | (only_first & (time >= time[:, None]))
    return longer.astype(int) - longer.T.astype(int)


def _means(used: pd.DataFrame) -> pd.DataFrame:
    """Return mean log response, and whether it is a lower bound, for each x in ascending order."""
    groups = used.assign(log=np.log(used["response"])).groupby("x")
    return pd.DataFrame({"log": groups["log"].mean(), "bound": ~groups["observed"].all()})


def _direction(means: pd.DataFrame) -> str:
    log, bound = means["log"].to_numpy(), means["bound"].to_numpy(bool)
    # Equal means of one seed or of several differ in their last digits.
    level = np.isclose(log[1:], log[:-1], rtol=0, atol=1e-12)
    rises = ((log[1:] > log[:-1]) & ~level) | (level & bound[1:])
    falls = ((log[1:] < log[:-1]) & ~level) | (level & bound[:-1])
    if (rises & ~bound[:-1]).all():
        return "rising"
    return "falling" if (falls & ~bound[1:]).all() else "neither"


def _sizes(used: pd.DataFrame, confidence: float) -> tuple[dict, str]:
    """Return the ratios with their intervals and bounds, and what to say about them."""
    means = _means(used)
    complete = means[~means["bound"]]
    result = {"largest_over_smallest_is_lower_bound": bool(means["bound"].any())}
    if not complete.empty:
        # The smallest mean is at most the smallest that is known, so this bounds from below.
        difference = means["log"].max() - complete["log"].min()
        result["largest_over_smallest_response"] = math.exp(difference)
    smallest, largest = means.iloc[0], means.iloc[-1]
    if smallest["bound"] and largest["bound"]:
        return result, "Both ends have censored runs: no ratio."
    result["ratio"] = math.exp(largest["log"] - smallest["log"])
    result["ratio_is_lower_bound"] = bool(largest["bound"])
    result["ratio_is_upper_bound"] = bool(smallest["bound"])
    if smallest["bound"] or largest["bound"]:
        side = "lower" if largest["bound"] else "upper"
        return result, f"An end has censored runs: the ratio is a {side} bound without interval."
    found = blocked_ratio(used, means.index[-1], means.index[0], confidence)
    if found is None:
        return result, "Seeds are too few, or equal: the ratio has no interval."
    result["ratio"], result["ratio_interval"] = found
    return result, ""


def blocked_ratio(
    runs: pd.DataFrame, above: float, below: float, confidence: float
) -> tuple[float, Interval] | None:
    """Return the ratio of the responses at two x, with its interval, from all runs of a sweep.

    An analysis of variance of log responses with x and seed as factors (randomised blocks, Fisher
    1935): a seed draws map, weights and data order at every x, and so is compared with itself; the
    spread that is left is taken as equal at every x, so that a few seeds at each of several x tell
    it. An x with censored runs does not take part. The interval is Student's.

    Args:
        runs: columns x, seed, response and observed (bool).
        above: x of the numerator.
        below: x of the denominator.
        confidence: coverage, such as 0.95.

    Returns:
        The ratio and its interval; None if no spread is left to tell, if none of the seeds links
        the two x, or if the interval has no bound that is finite.
    """
    whole = runs[runs.groupby("x")["observed"].transform("all")]
    values, seeds = (pd.get_dummies(whole[name], dtype=float) for name in ("x", "seed"))
    design = np.column_stack([values, seeds.iloc[:, 1:]])
    if len(whole) <= design.shape[1] or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    fit = sm.OLS(np.log(whole["response"].to_numpy(float)), design).fit()
    if fit.ssr < EXACT_SPREAD * len(whole):
        return None
    contrast = np.zeros(design.shape[1])
    contrast[[values.columns.get_loc(above), values.columns.get_loc(below)]] = 1, -1
    test = fit.t_test(contrast)
    low, high = test.conf_int(1 - confidence)[0]
    if not high - low < 700:  # beyond that it says nothing, and overflows
        return None
    return math.exp(test.effect.item()), (math.exp(low), math.exp(high))
