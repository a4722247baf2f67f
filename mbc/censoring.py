"""Waiting times with their censored runs: a power law and a survival curve.

A censored run says "later than the last step". Leaving it out, as least squares must, drops the
slowest runs, and that biases an exponent towards 0; here it takes part with what it says.
All times are optimiser steps.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special, stats

from mbc.scaling import MINIMUM_POINTS, Interval, fit_line

EXACT_RESIDUAL = 1e-8
"""Residuals of log tau below which points lie on a line: their likelihood has no maximum."""


@dataclass(frozen=True)
class CensoredPowerLaw:
    """tau = prefactor * x ** exponent * exp(sigma * e), e standard normal, censored runs included.

    Attributes:
        n_observed: runs with a transition in the fit.
        n_censored: runs in the fit of which only the last step before their tau is known.
        n_left_out: diverged, undefined or unusable runs (x or tau not positive).
        exponent: slope of log tau on log x; None if it cannot be estimated.
        interval: of the exponent, by jackknife, see `censored_power_law`; None if there is no
            exponent, no sigma, or none without the runs of some x.
        log_prefactor: intercept, log steps.
        sigma: standard deviation of log tau around the line; None if the fit is exact.
        statement: what the numbers cannot tell; empty if there is nothing to say.
    """

    n_observed: int
    n_censored: int
    n_left_out: int
    exponent: float | None = None
    interval: Interval | None = None
    log_prefactor: float | None = None
    sigma: float | None = None
    statement: str = ""


def censored_power_law(runs: pd.DataFrame, x: str, *, confidence: float) -> CensoredPowerLaw:
    """Fit log tau = a + b log x + sigma e by maximum likelihood with censored runs (Tobin 1958).

    An observed run contributes its density, a censored one the probability of a tau after its
    last step; tau is taken as known exactly though it is known to within an evaluation. The
    interval is that of the jackknife that leaves out all runs of one x at a time, since the seeds
    of a condition are not independent points of the line (MacKinnon, Nielsen and Webb 2023), with
    Student's t for a line through as many points as there are x.

    Args:
        runs: columns x, tau, tau_status; tau of a censored run is the last step seen.
        x: the column of the quantity, positive.
        confidence: coverage of the interval, such as 0.95.
    """
    used, _ = observed_and_censored(runs, "tau", x)
    used = used[used["x"] > 0]
    n_left_out = len(runs) - len(used)
    observed = used["observed"].to_numpy(bool)
    log_x, log_tau = np.log(used["x"].to_numpy()), np.log(used["response"].to_numpy())
    n_observed, n_points = int(observed.sum()), used["x"].nunique()
    counts = {
        "n_observed": n_observed,
        "n_censored": len(used) - n_observed,
        "n_left_out": n_left_out,
    }
    observed_points = len(np.unique(log_x[observed]))
    if n_observed < MINIMUM_POINTS or n_points < MINIMUM_POINTS or observed_points < 2:
        reason = (
            f"Not estimable: {n_observed} transitions of {len(used)} runs, "
            f"at {observed_points} of {n_points} different {x}."
        )
        return CensoredPowerLaw(**counts, statement=_statement(reason, **counts))
    intercept, exponent, sigma = _fit(log_x, log_tau, observed)
    line = {"exponent": exponent, "log_prefactor": intercept, "sigma": sigma}
    if sigma is None:
        reason = "The observed tau lie exactly on a line: no sigma and no interval."
        return CensoredPowerLaw(**counts, **line, statement=_statement(reason, **counts))
    interval = _jackknife_interval(log_x, log_tau, observed, exponent, confidence)
    reason = [] if interval else [f"No interval: the exponent rests on the runs of one {x}."]
    return CensoredPowerLaw(
        **counts, **line, interval=interval, statement=_statement(*reason, **counts)
    )


def survival_curve(runs: pd.DataFrame, *, confidence: float) -> pd.DataFrame:
    """Return the share of runs that still wait after each step (Kaplan and Meier 1958).

    A run censored at a step still waited then, so it is at risk in the transitions of that step.
    The pointwise interval is Greenwood's on the scale log(-log survival) (Kalbfleisch and
    Prentice 1980). Where that does not exist, at a survival of 1 or 0, it is 0 to 1: nothing is
    claimed. Diverged and undefined runs do not count.

    Args:
        runs: columns tau, tau_status; tau of a censored run is the last step seen.
        confidence: coverage of the interval at one step, such as 0.95.

    Returns:
        One row for step 0 and for each step at which something happened, ascending: step,
        survival, low, high, and the numbers of runs at_risk, of events and of runs censored.
    """
    used, _ = observed_and_censored(runs, "tau", "tau")
    table = used.groupby("response")["observed"].agg(events="sum", runs="size").astype(int)
    table.loc[0.0] = 0
    table = table.sort_index()
    events = table["events"].to_numpy()
    at_risk = len(used) - table["runs"].cumsum().to_numpy() + table["runs"].to_numpy()
    survival = np.cumprod(1 - events / np.maximum(at_risk, 1))
    inside = (survival > 0) & (survival < 1)
    left = np.where(inside, at_risk - events, 1)
    greenwood = np.sqrt(np.cumsum(events / np.maximum(at_risk * left, 1)))
    log_survival = np.log(survival, where=inside, out=np.full(len(survival), -1.0))
    spread = np.exp(stats.norm.ppf((1 + confidence) / 2) * greenwood / -log_survival)
    return pd.DataFrame(
        {
            "step": table.index.to_numpy(),
            "survival": survival,
            "low": np.where(inside, np.exp(log_survival * spread), 0.0),
            "high": np.where(inside, np.exp(log_survival / spread), 1.0),
            "at_risk": at_risk,
            "events": events,
            "censored": table["runs"].to_numpy() - events,
        }
    )


def median_waiting_time(curve: pd.DataFrame) -> float | None:
    """Return the first step at which half of the runs or fewer still wait; None if there is none.

    Args:
        curve: of `survival_curve`.
    """
    half = curve[curve["survival"] <= 0.5 + 1e-9]  # 1/2 as a product of fractions is inexact
    return None if half.empty else float(half["step"].iloc[0])


def observed_and_censored(runs: pd.DataFrame, response: str, x: str) -> tuple[pd.DataFrame, int]:
    """Return the runs whose waiting time is known or bounded from below, and how many are not.

    Args:
        runs: columns response, x, tau_status.
        response: column of the waiting time in any unit; of a censored run, the last one seen.
        x: the column of the quantity.

    Returns:
        Float columns x and response, and observed (bool); and the number of other runs: diverged,
        undefined, or without a positive response or an x.
    """
    table = pd.DataFrame(
        {
            "x": runs[x].astype(float),
            "response": runs[response].astype(float),
            "observed": (runs["tau_status"] == "observed").astype(bool),
        }
    )
    known = runs["tau_status"].isin(["observed", "censored"]) & (table["response"] > 0)
    used = table[known & np.isfinite(table["x"])]
    return used, len(runs) - len(used)


def _fit(
    log_x: np.ndarray, log_tau: np.ndarray, observed: np.ndarray
) -> tuple[float, float, float | None]:
    """Return intercept, slope and sigma; no sigma if it tends to 0: no run contradicts a line."""
    line = fit_line(log_x[observed], log_tau[observed])
    from_line = log_tau - (line.params[0] + line.params[1] * log_x)
    contradicted = np.abs(from_line[observed]).max() > EXACT_RESIDUAL
    if not contradicted and (from_line[~observed] <= EXACT_RESIDUAL).all():
        return float(line.params[0]), float(line.params[1]), None
    # Centred, so that intercept and slope are nearly uncorrelated whatever the units of x are.
    center_x, center_tau = float(log_x.mean()), float(log_tau.mean())
    design = np.column_stack([np.ones_like(log_x), log_x - center_x])
    (intercept, slope), sigma = _maximise(design, log_tau - center_tau, observed)
    return center_tau + intercept - slope * center_x, slope, sigma


def _maximise(
    design: np.ndarray, log_tau: np.ndarray, observed: np.ndarray
) -> tuple[list[float], float]:
    """Return the coefficients and the sigma that maximise the likelihood.

    In the parameters coefficients / sigma and 1 / sigma it is concave (Olsen 1978), so Newton's
    method with step halving reaches the one maximum from anywhere.

    Args:
        design: [runs, coefficients].
        log_tau: [runs].
        observed: [runs], bool.
    """
    signed = np.column_stack([-design, log_tau])  # times the parameters: standardised residuals
    of_observed, of_censored = signed[observed], signed[~observed]
    n_observed = len(of_observed)

    def log_likelihood(parameters):
        if parameters[-1] <= 0:
            return -math.inf
        residuals = of_observed @ parameters
        density = n_observed * math.log(parameters[-1] / math.sqrt(2 * math.pi))
        density -= residuals @ residuals / 2
        return density + special.log_ndtr(-(of_censored @ parameters)).sum()

    start = np.linalg.lstsq(design, log_tau, rcond=None)[0]
    sigma = max(float(np.std(log_tau - design @ start)), EXACT_RESIDUAL)
    parameters = np.append(start, 1) / sigma
    value = log_likelihood(parameters)
    for _ in range(200):
        bounds = of_censored @ parameters
        hazard = np.exp(-(bounds**2) / 2 - special.log_ndtr(-bounds)) / math.sqrt(2 * math.pi)
        gradient = -of_observed.T @ (of_observed @ parameters) - of_censored.T @ hazard
        gradient[-1] += n_observed / parameters[-1]
        curvature = of_observed.T @ of_observed
        curvature += (of_censored.T * (hazard * (hazard - bounds))) @ of_censored
        curvature[-1, -1] += n_observed / parameters[-1] ** 2
        step = np.linalg.solve(curvature, gradient)
        promised = float(gradient @ step)
        size = 1.0
        while size > 1e-12 and log_likelihood(parameters + size * step) < value - 1e-12:
            size /= 2
        parameters = parameters + size * step
        value = log_likelihood(parameters)
        if promised < 1e-14:
            break
    sigma = 1 / float(parameters[-1])
    return [float(scaled) * sigma for scaled in parameters[:-1]], sigma


def _jackknife_interval(
    log_x: np.ndarray,
    log_tau: np.ndarray,
    observed: np.ndarray,
    exponent: float,
    confidence: float,
) -> Interval | None:
    """Return the interval from the slopes without all runs of one x; None if one has no slope."""
    values = np.unique(log_x)
    slopes = []
    for value in values:
        rest = log_x != value
        if len(np.unique(log_x[rest & observed])) < 2:
            return None
        slopes.append(_fit(log_x[rest], log_tau[rest], observed[rest])[1])
    error = math.sqrt((len(values) - 1) * np.var(slopes))
    half = float(stats.t.ppf((1 + confidence) / 2, len(values) - 2)) * error
    return exponent - half, exponent + half


def _statement(*parts: str, n_observed: int, n_censored: int, n_left_out: int) -> str:
    parts = list(parts)
    if n_censored > n_observed:
        parts.append("More than half of the runs are censored.")
    if n_left_out:
        parts.append(f"{n_left_out} diverged or undefined runs are not in the fit.")
    return " ".join(parts)
