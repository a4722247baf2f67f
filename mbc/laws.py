"""Other laws than the power law, and what its exponent rests on: conditions and seeds.

Only observed runs can enter here; each result says how many censored or diverged ones were left
out. See `mbc.censoring` for the power law with censored runs. Times are optimiser steps.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy import stats
from scipy.optimize import least_squares

from mbc.scaling import MINIMUM_POINTS, Interval, condition_means, fit_line, observed_runs

EXACT_SIGMA = 1e-7
"""Spread of log tau around a law below which the fit is exact and its likelihood infinite."""

MINIMUM_SEEDS = 3
"""Seeds of a condition from which its spread can be told."""

LAWS = ("power law", "x log x", "exponential", "linear")


@dataclass(frozen=True)
class LawFit:
    """One law with Gaussian errors of log tau.

    Attributes:
        law: one of `LAWS`, see `compare_laws`.
        n_parameters: a, b where there is one, and sigma.
        a: the constant of the law, in its own units.
        b: slope of the law; None for x log x.
        sigma: maximum-likelihood standard deviation of log tau around the law.
        aicc: corrected Akaike criterion; None if it does not exist.
        difference: aicc minus the smallest one.
        weight: Akaike weight: share of the support among the laws compared.
    """

    law: str
    n_parameters: int
    a: float
    b: float | None
    sigma: float
    aicc: float | None = None
    difference: float | None = None
    weight: float | None = None


@dataclass(frozen=True)
class LawComparison:
    """Which law describes the observed runs best, and by how much.

    Attributes:
        n_runs: observed runs used.
        n_points: different values of x among them.
        n_left_out: censored or diverged runs, not used.
        laws: the fits, in the order of `LAWS`; empty if there are too few points.
        best: the law with the smallest aicc, or the only exact one; None if it cannot be told.
        statement: what the numbers cannot tell; empty if there is nothing to say.
    """

    n_runs: int
    n_points: int
    n_left_out: int
    laws: tuple[LawFit, ...] = ()
    best: str | None = None
    statement: str = ""


@dataclass(frozen=True)
class MixedModel:
    """log tau = a + b log x + u(condition) + e, u and e normal.

    Attributes:
        n_runs: observed runs used.
        n_conditions: conditions among them.
        n_left_out: censored or diverged runs, not used.
        exponent: b; None if it cannot be estimated.
        interval: of b, Wald with Student's t of n_conditions - 2 degrees of freedom: x belongs to
            a condition, so more seeds do not add points of the line.
        between_sd: standard deviation of u, of log tau between conditions.
        within_sd: standard deviation of e, of log tau between seeds of a condition.
        converged: whether the optimiser said so.
        statement: what the numbers cannot tell; empty if there is nothing to say.
    """

    n_runs: int
    n_conditions: int
    n_left_out: int
    exponent: float | None = None
    interval: Interval | None = None
    between_sd: float | None = None
    within_sd: float | None = None
    converged: bool = False
    statement: str = ""


def compare_laws(runs: pd.DataFrame, x: str) -> LawComparison:
    """Compare laws of tau in x by the corrected Akaike criterion (Hurvich and Tsai 1989).

    - power law: log tau = a + b log x
    - x log x: log tau = a + log(x log x), the law of a coupon collector
    - exponential: log tau = a + b x
    - linear: tau = a + b x, positive at every x that occurs

    Errors are Gaussian in log tau for all of them, so that their likelihoods are of the same data.
    The seeds of a condition are averaged, since they share what is peculiar to it.

    Args:
        runs: columns condition, x, tau, tau_status.
        x: the column of the quantity.
    """
    observed, n_left_out = observed_runs(runs)
    values, log_tau = condition_means(observed, x)
    n_points = len(np.unique(values))
    counts = {"n_runs": len(observed), "n_points": n_points, "n_left_out": n_left_out}
    if n_points < MINIMUM_POINTS:
        return LawComparison(
            **counts, statement=f"Not comparable: {len(observed)} transitions at {n_points} {x}."
        )
    fits = [fit for law in LAWS if (fit := _fit_law(law, values, log_tau)) is not None]
    parts = []
    if n_left_out:
        total = n_left_out + len(observed)
        parts.append(f"{n_left_out} of {total} runs had no transition and are not compared.")
    undefined = [law for law in LAWS if law not in [fit.law for fit in fits]]
    if undefined:
        parts.append(f"Not defined at every {x}: {', '.join(undefined)}.")
    exact = [fit.law for fit in fits if fit.sigma < EXACT_SIGMA]
    best = exact[0] if len(exact) == 1 else None
    if exact:
        parts.append(f"Exact fit, no criterion: {', '.join(exact)}.")
    elif len(values) - max(fit.n_parameters for fit in fits) - 1 <= 0:
        parts.append(f"{len(values)} conditions are too few for the corrected criterion.")
    else:
        fits = _with_criterion(fits, len(values))
        best = min(fits, key=lambda fit: fit.aicc).law
    return LawComparison(**counts, laws=tuple(fits), best=best, statement=" ".join(parts))


def leave_one_out(runs: pd.DataFrame, x: str) -> Interval | None:
    """Return the least and the largest exponent of least squares with one condition left out.

    None if what is left has fewer than `MINIMUM_POINTS` different x, or x is not positive.

    Args:
        runs: columns condition, x, tau, tau_status.
        x: the column of the quantity.
    """
    observed, _ = observed_runs(runs)
    if (observed[x] <= 0).any():
        return None
    exponents = []
    for condition in observed["condition"].unique():
        rest = observed[observed["condition"] != condition]
        if rest[x].nunique() < MINIMUM_POINTS:
            return None
        log_x, log_tau = np.log(rest[x].to_numpy(float)), np.log(rest["tau"].to_numpy(float))
        exponents.append(float(fit_line(log_x, log_tau).params[1]))
    return (min(exponents), max(exponents)) if exponents else None


def mixed_model(runs: pd.DataFrame, x: str, *, confidence: float) -> MixedModel:
    """Fit a power law with a random intercept for each condition (Laird and Ware 1982), by REML.

    Done where at least `MINIMUM_POINTS` different x have a condition with `MINIMUM_SEEDS` observed
    seeds; fewer cannot tell the spread between conditions from that within.

    Args:
        runs: columns condition, x, tau, tau_status.
        x: the column of the quantity.
        confidence: coverage of the interval, such as 0.95.
    """
    observed, n_left_out = observed_runs(runs)
    seeds = observed.groupby("condition")["tau"].size()
    counts = {"n_runs": len(observed), "n_conditions": len(seeds), "n_left_out": n_left_out}
    repeated = observed[observed["condition"].map(seeds) >= MINIMUM_SEEDS]
    if repeated[x].nunique() < MINIMUM_POINTS:
        reason = (
            f"Not estimable: needs {MINIMUM_SEEDS} observed seeds at {MINIMUM_POINTS} different "
            f"{x}, has them at {repeated[x].nunique()}."
        )
        return MixedModel(**counts, statement=reason)
    if (observed[x] <= 0).any():
        return MixedModel(**counts, statement=f"Not estimable: {x} is not positive everywhere.")
    log_x, log_tau = np.log(observed[x].to_numpy(float)), np.log(observed["tau"].to_numpy(float))
    conditions = observed["condition"].to_numpy(object)
    within = log_tau - pd.Series(log_tau).groupby(conditions).transform("mean").to_numpy()
    if np.std(within) < EXACT_SIGMA:
        return MixedModel(**counts, statement="Not estimable: seeds do not differ in tau.")
    # statsmodels tells trouble by warnings alone: they become part of the result.
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            model = sm.MixedLM(log_tau, sm.add_constant(log_x - log_x.mean()), conditions)
            # Of its optimisers the one that also converges where the spread of conditions is 0.
            fit = model.fit(reml=True, method="powell")
            between, within_variance = float(fit.cov_re[0, 0]), float(fit.scale)
        except (np.linalg.LinAlgError, ValueError, FloatingPointError) as error:
            return MixedModel(**counts, statement=f"Not estimable: {error}.")
    exponent = float(fit.fe_params[1])
    error = _slope_error(log_x - log_x.mean(), conditions, between, within_variance)
    if not np.isfinite([exponent, error, between, within_variance]).all():
        return MixedModel(**counts, statement="Not estimable: the fit is not finite.")
    half = error * float(stats.t.ppf((1 + confidence) / 2, len(seeds) - 2))
    # Its warning of a boundary is for any variance below 0.01, whatever the units are.
    messages = {str(warning.message).strip().rstrip(".") for warning in caught}
    parts = [f"statsmodels: {text}." for text in sorted(messages) if "boundary" not in text]
    if between < 1e-6 * within_variance:
        parts.append("Conditions differ by no more than their seeds do.")
    return MixedModel(
        **counts,
        exponent=exponent,
        interval=(exponent - half, exponent + half),
        between_sd=math.sqrt(max(between, 0.0)),
        within_sd=math.sqrt(within_variance),
        converged=bool(fit.converged),
        statement=" ".join(parts),
    )


def _fit_law(law: str, x: np.ndarray, log_tau: np.ndarray) -> LawFit | None:
    """Return the least-squares fit, in log tau, of a law; None where x is outside its domain."""
    if law == "power law":
        return _line(law, np.log(x), log_tau) if (x > 0).all() else None
    if law == "exponential":
        return _line(law, x, log_tau)
    if law == "x log x":
        if (x <= 1).any():
            return None
        from_shape = log_tau - np.log(x * np.log(x))
        return LawFit(law, 2, float(from_shape.mean()), None, float(from_shape.std()))
    # A line is positive on a range if it is at both ends: their logarithms are free parameters.
    share = (x - x.min()) / (x.max() - x.min())

    def residuals(log_ends):
        scale = log_ends.max()
        low, high = np.exp(log_ends - scale)
        return scale + np.log(low + (high - low) * share) - log_tau

    at_ends = np.array([log_tau[x == x.min()].mean(), log_tau[x == x.max()].mean()])
    fit = least_squares(residuals, at_ends, xtol=1e-14, ftol=1e-14, gtol=1e-14)
    low, high = np.exp(fit.x)
    slope = (high - low) / (x.max() - x.min())
    sigma = float(np.sqrt(np.mean(fit.fun**2)))
    return LawFit(law, 3, float(low - slope * x.min()), float(slope), sigma)


def _line(law: str, shape: np.ndarray, log_tau: np.ndarray) -> LawFit:
    fit = fit_line(shape, log_tau)
    sigma = float(np.sqrt(np.mean(fit.resid**2)))
    return LawFit(law, 3, float(fit.params[0]), float(fit.params[1]), sigma)


def _with_criterion(fits: list[LawFit], n_conditions: int) -> list[LawFit]:
    """Return the fits with aicc, difference and weight."""
    criteria = []
    for fit in fits:
        p = fit.n_parameters
        likelihood = -n_conditions / 2 * (math.log(2 * math.pi * fit.sigma**2) + 1)
        criteria.append(2 * p - 2 * likelihood + 2 * p * (p + 1) / (n_conditions - p - 1))
    differences = np.array(criteria) - min(criteria)
    weights = np.exp(-differences / 2) / np.exp(-differences / 2).sum()
    return [
        LawFit(fit.law, fit.n_parameters, fit.a, fit.b, fit.sigma, *map(float, numbers))
        for fit, *numbers in zip(fits, criteria, differences, weights, strict=True)
    ]


def _slope_error(log_x: np.ndarray, conditions: np.ndarray, between: float, within: float) -> float:
    """Return the standard error of the slope by generalised least squares at these variances.

    Not statsmodels' own: that inverts a Hessian which is singular where a variance is 0.
    """
    design = np.column_stack([np.ones_like(log_x), log_x])
    covariance = within * np.eye(len(log_x)) + between * (conditions[:, None] == conditions)
    return float(np.sqrt(np.linalg.inv(design.T @ np.linalg.solve(covariance, design))[1, 1]))
