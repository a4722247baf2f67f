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
from scipy.optimize import brentq

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
        interval: of the exponent, from the profile likelihood, see `censored_power_law`.
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
    last step. The interval is that of the profile likelihood of b. Its threshold is not the
    chi-square quantile, too narrow for ten runs, but the one with which it equals Student's
    interval when nothing is censored: n log(1 + t² / (n - 2)) with n observed runs. Runs are
    taken as independent, and tau as known exactly though it is known to within an evaluation.

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
    exact = _exact_line(log_x, log_tau, observed)
    if exact is not None:
        return CensoredPowerLaw(
            **counts,
            exponent=exact[1],
            log_prefactor=exact[0],
            statement=_statement(
                "The observed tau lie exactly on a line: no sigma and no interval.", **counts
            ),
        )
    # Centred, so that intercept and slope are nearly uncorrelated whatever the units of x are.
    center_x, center_tau = float(log_x.mean()), float(log_tau.mean())
    from_x, from_tau = log_x - center_x, log_tau - center_tau
    _, (intercept, exponent), sigma = _maximise(
        np.column_stack([np.ones_like(from_x), from_x]), from_tau, observed
    )
    return CensoredPowerLaw(
        **counts,
        exponent=exponent,
        interval=_profile_interval(from_x, from_tau, observed, exponent, sigma, confidence),
        log_prefactor=center_tau + intercept - exponent * center_x,
        sigma=sigma,
        statement=_statement(**counts),
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


def _exact_line(
    log_x: np.ndarray, log_tau: np.ndarray, observed: np.ndarray
) -> tuple[float, float] | None:
    """Return intercept and slope if sigma tends to 0: no run, censored or not, contradicts."""
    line = fit_line(log_x[observed], log_tau[observed])
    from_line = log_tau - (line.params[0] + line.params[1] * log_x)
    contradicted = np.abs(from_line[observed]).max() > EXACT_RESIDUAL
    if contradicted or (from_line[~observed] > EXACT_RESIDUAL).any():
        return None
    return float(line.params[0]), float(line.params[1])


def _maximise(
    design: np.ndarray, log_tau: np.ndarray, observed: np.ndarray
) -> tuple[float, list[float], float]:
    """Maximise the likelihood over coefficients and sigma.

    In the parameters coefficients / sigma and 1 / sigma it is concave (Olsen 1978), so Newton's
    method with step halving reaches the one maximum from anywhere.

    Args:
        design: [runs, coefficients].
        log_tau: [runs].
        observed: [runs], bool.

    Returns:
        The log-likelihood, the coefficients, sigma.
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
    return float(value), [float(scaled) * sigma for scaled in parameters[:-1]], sigma


def _profile_interval(
    log_x: np.ndarray,
    log_tau: np.ndarray,
    observed: np.ndarray,
    exponent: float,
    sigma: float,
    confidence: float,
) -> Interval | None:
    """Return the exponents whose profile likelihood is within the threshold of the maximum."""
    degrees = int(observed.sum()) - 2
    quantile = stats.t.ppf((1 + confidence) / 2, degrees)
    threshold = (degrees + 2) * math.log1p(quantile**2 / degrees) / 2
    constant = np.ones((len(log_x), 1))

    def profile(slope):
        return _maximise(constant, log_tau - slope * log_x, observed)[0]

    peak = profile(exponent)
    bounds = []
    for direction in (-1, 1):
        width = direction * 1.5 * quantile * sigma / math.sqrt(log_x @ log_x)
        for _ in range(60):
            if peak - profile(exponent + width) > threshold:
                break
            width *= 2
        else:
            return None
        bounds.append(
            brentq(
                lambda slope: peak - profile(slope) - threshold,
                exponent,
                exponent + width,
                xtol=1e-7 * abs(width),
            )
        )
    return float(bounds[0]), float(bounds[1])


def _statement(*parts: str, n_observed: int, n_censored: int, n_left_out: int) -> str:
    parts = list(parts)
    if n_censored > n_observed:
        parts.append("More than half of the runs are censored.")
    if n_left_out:
        parts.append(f"{n_left_out} diverged or undefined runs are not in the fit.")
    return " ".join(parts)
