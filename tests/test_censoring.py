import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mbc.censoring import censored_power_law, median_waiting_time, survival_curve
from mbc.scaling import fit_line, power_law

SIZES = [3000, 5000, 7000, 10_000, 13_000, 17_000, 20_000, 25_000, 30_000, 36_000]
COLUMNS = ["condition", "seed", "dataset_size", "tau", "tau_status"]


def runs(noise=0.2, seeds=1, seed=0, last_step=np.inf, sizes=SIZES, condition_noise=0.0):
    rng = np.random.default_rng(seed)
    rows = []
    for size in sizes:
        shift = rng.normal(0, condition_noise) if condition_noise else 0.0
        for run_seed in range(seeds):
            tau = np.exp(np.log(0.05) + 1.2 * np.log(size) + shift + rng.normal(0, noise))
            status = "observed" if tau <= last_step else "censored"
            rows.append((f"d{size}", run_seed, size, min(tau, last_step), status))
    return pd.DataFrame(rows, columns=COLUMNS)


def fit(table, x="dataset_size"):
    result = censored_power_law(table, x, confidence=0.95)
    json.dumps(asdict(result), allow_nan=False)
    return result


def events(*steps):
    """Return runs from steps such as 6 (observed) and "6+" (censored)."""
    tau = [float(str(step).rstrip("+")) for step in steps]
    status = ["censored" if str(step).endswith("+") else "observed" for step in steps]
    return pd.DataFrame({"tau": tau, "tau_status": status})


def line(table):
    return fit_line(np.log(table["dataset_size"]), np.log(table["tau"]))


def test_without_censoring_it_is_least_squares_with_a_jackknife_over_conditions():
    table = runs(seeds=2)
    expected = line(table)
    result = fit(table)
    assert result.exponent == pytest.approx(expected.params.iloc[1], rel=1e-6)
    assert result.log_prefactor == pytest.approx(expected.params.iloc[0], rel=1e-6)
    assert result.sigma == pytest.approx(np.sqrt(np.mean(expected.resid**2)), rel=1e-6)
    assert (result.n_observed, result.n_censored, result.n_left_out) == (20, 0, 0)
    assert result.statement == ""
    slopes = [
        line(table[table["dataset_size"] != size]).params.iloc[1]
        for size in table["dataset_size"].unique()
    ]
    error = np.sqrt(9 / 10 * np.sum((slopes - np.mean(slopes)) ** 2))
    half = stats.t.ppf(0.975, 8) * error
    expected_interval = (result.exponent - half, result.exponent + half)
    assert result.interval == pytest.approx(expected_interval, rel=1e-6)


def test_dropping_censored_runs_biases_the_exponent_and_the_censored_fit_does_not():
    dropped, kept = [], []
    for number in range(30):
        table = runs(noise=0.5, seeds=4, seed=number, last_step=6000)
        naive = power_law(table, "dataset_size", confidence=0.95, resamples=2, seed=0)
        dropped.append(naive.exponent)
        kept.append(fit(table).exponent)
    assert np.mean(dropped) < 1.1
    assert np.mean(kept) == pytest.approx(1.2, abs=0.05)


@pytest.mark.parametrize(
    ("seeds", "noise", "condition_noise"), [(1, 0.2, 0.0), (3, 0.2, 0.0), (2, 0.1, 0.2)]
)
def test_intervals_cover_the_truth(seeds, noise, condition_noise):
    """95% intervals cover in 90% to 99% of 200 tables of which about a third is censored."""
    hits, censored = 0, 0
    for number in range(200):
        spread = {"noise": noise, "condition_noise": condition_noise}
        result = fit(runs(seeds=seeds, seed=number, last_step=7000, **spread))
        hits += result.interval[0] < 1.2 < result.interval[1]
        censored += result.n_censored / (result.n_censored + result.n_observed)
    assert 0.90 <= hits / 200 <= 0.99
    assert 0.25 <= censored / 200 <= 0.4


def test_an_exponent_that_rests_on_one_condition_has_no_interval():
    table = runs(sizes=[1000, 2000, 4000], seeds=2)
    table.loc[table["dataset_size"] == 4000, "tau_status"] = "censored"
    result = fit(table)
    assert result.exponent > 0
    assert result.interval is None
    assert "No interval: the exponent rests on the runs of one dataset_size" in result.statement


def test_the_maximum_is_that_of_a_general_optimiser():
    from scipy.optimize import minimize
    from scipy.stats import norm

    table = runs(seeds=2, last_step=7000)
    log_x, log_tau = np.log(table["dataset_size"].to_numpy()), np.log(table["tau"].to_numpy())
    observed = (table["tau_status"] == "observed").to_numpy()

    def loss(parameters):
        center, slope, log_sigma = parameters
        scaled = (log_tau - center - slope * (log_x - 9.5)) / np.exp(log_sigma)
        terms = np.where(observed, norm.logpdf(scaled) - log_sigma, norm.logsf(scaled))
        return -terms.sum()

    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000}
    other = minimize(loss, [8.0, 1.0, -1.0], method="Nelder-Mead", options=options).x
    result = fit(table)
    assert result.exponent == pytest.approx(other[1], abs=1e-5)
    assert result.sigma == pytest.approx(np.exp(other[2]), abs=1e-5)
    assert result.log_prefactor == pytest.approx(other[0] - 9.5 * other[1], abs=1e-4)
    gain = [-loss_at for loss_at in (loss([*other[:2], other[2] + d]) for d in (-0.01, 0, 0.01))]
    assert gain[1] == max(gain)


def test_units_of_x_and_tau_do_not_matter():
    table = runs(seeds=2, last_step=7000)
    scaled = table.assign(dataset_size=table["dataset_size"] * 1e-9, tau=table["tau"] * 1e6)
    assert fit(scaled).exponent == pytest.approx(fit(table).exponent, rel=1e-7)
    assert fit(scaled).interval == pytest.approx(fit(table).interval, rel=1e-6)


def test_diverged_and_undefined_runs_are_counted_not_used():
    table = runs()
    table["tau"] = table["tau"].round().astype("Int64")
    rest = fit(table.iloc[2:])
    table.loc[0, "tau_status"] = "diverged"
    table.loc[1, ["tau", "tau_status"]] = [pd.NA, "undefined"]
    result = fit(table)
    assert result.exponent == pytest.approx(rest.exponent)
    assert (result.n_observed, result.n_left_out) == (8, 2)
    assert "2 diverged or undefined runs are not in the fit" in result.statement


@pytest.mark.parametrize(
    "table",
    [
        runs().assign(tau_status="censored"),
        runs().assign(tau_status="diverged"),
        runs(sizes=[1000, 2000], seeds=4),
        runs(sizes=[1000] * 5),
        runs(sizes=[1000, 2000, 4000], seeds=3, last_step=250),  # transitions at one size alone
        runs().iloc[:0],
        runs().assign(dataset_size=0),
    ],
)
def test_not_estimable_is_a_statement(table):
    result = fit(table)
    assert (result.exponent, result.interval, result.sigma) == (None, None, None)
    assert result.statement.startswith("Not estimable: ")


def test_an_exact_fit_has_an_exponent_without_sigma_and_interval():
    for table in (runs(noise=0.0), runs(noise=0.0, last_step=7000)):
        result = fit(table)
        assert result.exponent == pytest.approx(1.2)
        assert (result.sigma, result.interval) == (None, None)
        assert "exactly on a line" in result.statement
    assert fit(runs().assign(tau=100.0)).exponent == pytest.approx(0, abs=1e-9)


def test_a_censored_run_above_an_exact_line_contradicts_it():
    table = runs(noise=0.0)
    table.loc[9, ["tau", "tau_status"]] = [60_000.0, "censored"]
    result = fit(table)
    assert result.sigma > 0
    assert result.interval[0] < result.exponent < result.interval[1]


def test_mostly_censored_is_said():
    result = fit(runs(noise=0.5, seeds=3, last_step=2500))
    assert result.n_censored > result.n_observed
    assert "More than half of the runs are censored" in result.statement


def test_the_survival_curve_of_an_example_worked_by_hand():
    curve = survival_curve(events(6, 6, 6, "6+", 7, "9+", 10, "10+"), confidence=0.95)
    assert curve["step"].tolist() == [0, 6, 7, 9, 10]
    assert curve["at_risk"].tolist() == [8, 8, 4, 3, 2]
    assert curve["events"].tolist() == [0, 3, 1, 0, 1]
    assert curve["censored"].tolist() == [0, 1, 0, 1, 1]
    expected = [1, 5 / 8, 5 / 8 * 3 / 4, 15 / 32, 15 / 64]
    assert curve["survival"].tolist() == pytest.approx(expected)
    # log(-log) scale: survival ** exp(± z sqrt(sum d / (n (n - d))) / -log survival)
    spread = np.exp(1.959964 * np.sqrt(3 / (8 * 5)) / -np.log(5 / 8))
    assert curve["low"][1] == pytest.approx((5 / 8) ** spread, rel=1e-6)
    assert curve["high"][1] == pytest.approx((5 / 8) ** (1 / spread), rel=1e-6)


def test_the_survival_curve_is_that_of_scipy():
    from scipy.stats import CensoredData, ecdf

    table = runs(seeds=3, last_step=7000)
    curve = survival_curve(table, confidence=0.9)
    observed = table["tau_status"] == "observed"
    data = CensoredData(uncensored=table["tau"][observed], right=table["tau"][~observed])
    other = ecdf(data).sf
    interval = other.confidence_interval(0.9, method="log-log")
    assert curve["survival"][1:].tolist() == pytest.approx(other.probabilities.tolist())
    assert curve["low"][1:].tolist() == pytest.approx(interval.low.probabilities.tolist())
    assert curve["high"][1:].tolist() == pytest.approx(interval.high.probabilities.tolist())


@pytest.mark.parametrize(
    ("steps", "median"),
    [
        ((1, 2, 3), 2),
        ((1, 2, "9+", "9+"), 2),  # exactly half
        ((1, 2, 3, "9+", "9+", "9+"), 3),  # 5/6 * 4/5 * 3/4 is not 1/2 in floating point
        ((1, "9+", "9+"), None),
        (("9+",), None),
        ((), None),
    ],
)
def test_the_median_waiting_time(steps, median):
    assert median_waiting_time(survival_curve(events(*steps), confidence=0.95)) == median


@pytest.mark.parametrize("steps", [(), ("5+",), (5,), (5, 5, 5), ("5+", "5+"), (1, "1+")])
def test_survival_curves_of_few_runs_have_no_gaps(steps):
    curve = survival_curve(events(*steps), confidence=0.95)
    assert np.isfinite(curve.to_numpy(float)).all()
    assert curve.loc[0, ["step", "survival", "low", "high"]].tolist() == [0, 1, 0, 1]
    assert ((curve["low"] >= 0) & (curve["low"] <= curve["survival"])).all()
    assert ((curve["high"] <= 1) & (curve["high"] >= curve["survival"])).all()
