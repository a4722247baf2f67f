"""How the waiting time grows: power laws by least squares, with intervals and equivalence tests.

Least squares of log tau on a log quantity, with statsmodels. Censored runs have no tau, so they
cannot enter; each result says how many were left out, because leaving out the slowest runs biases
an exponent towards 0.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy import stats

MINIMUM_POINTS = 3
"""Different values of x below which a line fits anything and has no interval."""

FEW_CONDITIONS = 6
"""Below this number of conditions a percentile bootstrap is clearly too narrow."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class PowerLaw:
    """tau = prefactor * x ** exponent, fitted to the observed runs.

    Attributes:
        exponent: slope of log tau on log x; None if it cannot be estimated.
        log_prefactor: intercept, log steps.
        r_squared: share of the variance of log tau that is explained.
        hc3_interval: from HC3 standard errors (MacKinnon and White 1985) and Student's t, of the
            line through the means of conditions: their seeds are not independent points of it.
        bootstrap_interval: percentile bootstrap; conditions are resampled, then seeds within them.
        degenerate_resamples: resamples without `MINIMUM_POINTS` different x, drawn but not used.
        n_runs: runs used.
        n_points: different values of x among them.
        n_left_out: censored or diverged runs, not used.
        statement: what the numbers cannot tell; empty if there is nothing to say.
    """

    n_runs: int
    n_points: int
    n_left_out: int
    exponent: float | None = None
    log_prefactor: float | None = None
    r_squared: float | None = None
    hc3_interval: Interval | None = None
    bootstrap_interval: Interval | None = None
    degenerate_resamples: int = 0
    statement: str = ""


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests of an exponent against a margin around 0 (Schuirmann 1987).

    Attributes:
        margin: |exponent| below this counts as no effect.
        p_value: the larger of the two one-sided p-values; None if it cannot be computed.
        interval: the confidence interval whose lying within the margin is the same test, with
            coverage 1 - 2 * level.
        equivalent: whether "no effect" is shown at the level.
        level: of the test.
    """

    margin: float
    level: float
    p_value: float | None
    interval: Interval | None
    equivalent: bool


def power_law(
    runs: pd.DataFrame, x: str, *, confidence: float, resamples: int, seed: int
) -> PowerLaw:
    """Fit tau = prefactor * x ** exponent.

    Args:
        runs: rows of the table of runs; runs whose tau is undefined do not count.
        x: the column of the quantity.
        confidence: coverage of both intervals, such as 0.95.
        resamples: bootstrap resamples.
        seed: of the resampling.
    """
    observed, n_left_out = observed_runs(runs)
    log_x, log_tau = np.log(observed[x].to_numpy(float)), np.log(observed["tau"].to_numpy(float))
    n_points = len(np.unique(log_x))
    counts = {"n_runs": len(observed), "n_points": n_points, "n_left_out": n_left_out}
    left_out = f"{n_left_out} of {n_left_out + len(observed)} runs had no transition"
    if n_points < 2:
        return PowerLaw(
            **counts, statement=f"Not estimable: {len(observed)} transitions at {n_points} {x}."
        )
    fit = fit_line(log_x, log_tau)
    line = {"exponent": float(fit.params[1]), "log_prefactor": float(fit.params[0])}
    if n_points < MINIMUM_POINTS or fit.df_resid < 1:
        return PowerLaw(
            **counts, **line, statement=f"Only {n_points} different {x}: a slope without interval."
        )
    statements = [f"{left_out} and are not in the fit."] if n_left_out else []
    n_conditions = observed["condition"].nunique()
    if n_conditions < FEW_CONDITIONS:
        statements.append(f"A bootstrap of {n_conditions} conditions is too narrow.")
    values, mean_log_tau = condition_means(observed, x)
    robust = fit_line(np.log(values), mean_log_tau).get_robustcov_results("HC3", use_t=True)
    exponents, degenerate = _bootstrap_lines(observed, x, resamples, seed)
    tail = (1 - confidence) / 2
    percentiles = np.quantile(exponents[:, 1], [tail, 1 - tail])
    return PowerLaw(
        **counts,
        **line,
        r_squared=float(fit.rsquared) if fit.centered_tss > 0 else None,
        hc3_interval=_interval(robust.conf_int(1 - confidence)[1]),
        bootstrap_interval=_interval(percentiles),
        degenerate_resamples=degenerate,
        statement=" ".join(statements),
    )


def power_law_curve(
    runs: pd.DataFrame, x: str, *, confidence: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Return the fitted curve with its pointwise bootstrap band: x, tau, low, high (steps).

    Empty where a curve or its band cannot be estimated.
    """
    observed, _ = observed_runs(runs)
    if observed[x].nunique() < MINIMUM_POINTS:
        return pd.DataFrame(columns=[x, "tau", "low", "high"], dtype=float)
    grid = np.linspace(np.log(observed[x].min()), np.log(observed[x].max()), 50)
    fit = fit_line(np.log(observed[x].to_numpy(float)), np.log(observed["tau"].to_numpy(float)))
    lines, _ = _bootstrap_lines(observed, x, resamples, seed)
    tail = (1 - confidence) / 2
    low, high = np.quantile(lines[:, :1] + lines[:, 1:] * grid, [tail, 1 - tail], axis=0)
    curve = fit.params[0] + fit.params[1] * grid
    return pd.DataFrame({x: grid, "tau": curve, "low": low, "high": high}).map(np.exp)


def equivalence(runs: pd.DataFrame, x: str, margin: float, level: float = 0.05) -> Equivalence:
    """Test whether the exponent of tau in x is equivalent to 0.

    Ordinary standard errors and Student's t, over conditions: the seeds of one are averaged, since
    they share what is peculiar to it. At least `MINIMUM_POINTS` different x are needed.
    """
    observed, _ = observed_runs(runs)
    values, log_tau = condition_means(observed, x)
    if len(np.unique(values)) < MINIMUM_POINTS:
        return Equivalence(margin, level, None, None, False)
    fit = fit_line(np.log(values), log_tau)
    exponent, error, degrees = fit.params[1], fit.bse[1], fit.df_resid
    if error == 0:  # equal taus: the estimate is exact as far as the data tell
        p_value = 0.0 if abs(exponent) < margin else 1.0
    else:
        above = stats.t.sf((exponent + margin) / error, degrees)
        below = stats.t.cdf((exponent - margin) / error, degrees)
        p_value = float(max(above, below))
    interval = _interval(fit.conf_int(2 * level)[1])
    return Equivalence(margin, level, p_value, interval, bool(p_value < level))


def observed_runs(runs: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return the runs whose tau was observed, and how many were censored or diverged."""
    observed = runs[(runs["tau_status"] == "observed") & (runs["tau"] > 0)]
    return observed, int(runs["tau_status"].isin(["censored", "diverged"]).sum())


def condition_means(observed: pd.DataFrame, x: str) -> np.ndarray:
    """Return x and the mean log tau over seeds of each condition, [2, conditions]."""
    logs = observed.assign(log_tau=np.log(observed["tau"].astype(float)))
    return logs.groupby("condition")[[x, "log_tau"]].mean().to_numpy(float).T


def fit_line(log_x: np.ndarray, log_tau: np.ndarray):
    """Return the statsmodels fit of log tau on log x, both [runs]: parameters intercept, slope."""
    return sm.OLS(log_tau, sm.add_constant(log_x, has_constant="add")).fit()


def _bootstrap_lines(
    observed: pd.DataFrame, x: str, resamples: int, seed: int
) -> tuple[np.ndarray, int]:
    """Return intercepts and slopes of resampled data, [usable, 2], and how many were degenerate.

    Conditions are drawn with replacement, then as many seeds within each as it has: runs of one
    condition are not independent points of the line.
    """
    rng = np.random.default_rng(seed)
    groups = [
        np.log(group[[x, "tau"]].to_numpy(float))
        for _, group in observed.groupby("condition", sort=True)
    ]
    lines, degenerate = [], 0
    while len(lines) < resamples:
        drawn = [groups[i] for i in rng.integers(len(groups), size=len(groups))]
        points = np.concatenate(
            [group[rng.integers(len(group), size=len(group))] for group in drawn]
        )
        if len(np.unique(points[:, 0])) < MINIMUM_POINTS:
            degenerate += 1
            if degenerate > 100 * resamples:
                raise ValueError(f"No resample of {len(groups)} conditions has 3 different {x}.")
            continue
        center = points.mean(axis=0)
        from_center = points - center
        slope = from_center[:, 0] @ from_center[:, 1] / (from_center[:, 0] @ from_center[:, 0])
        lines.append((center[1] - slope * center[0], slope))
    return np.array(lines), degenerate


def _interval(bounds) -> Interval:
    return float(bounds[0]), float(bounds[1])
