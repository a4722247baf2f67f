import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from mbc.laws import LAWS, compare_laws, leave_one_out, mixed_model
from mbc.scaling import fit_line

SIZES = [3000, 5000, 7000, 10_000, 13_000, 17_000, 20_000, 25_000, 30_000, 36_000]
TRUTH = {
    "power law": lambda x: 0.001 * x**1.7,
    "x log x": lambda x: 0.02 * x * np.log(x),
    "exponential": lambda x: 400 * np.exp(8e-5 * x),
    "linear": lambda x: 2000 + 0.2 * x,
}


def runs(law=TRUTH["power law"], noise=0.0, seeds=1, seed=0, condition_noise=0.0, sizes=SIZES):
    rng = np.random.default_rng(seed)
    rows = []
    for number, size in enumerate(sizes):
        shift = rng.normal(0, condition_noise)
        for run_seed in range(seeds):
            tau = law(size) * np.exp(shift + rng.normal(0, noise))
            rows.append((f"d{number}", run_seed, size, tau, "observed"))
    return pd.DataFrame(rows, columns=["condition", "seed", "dataset_size", "tau", "tau_status"])


def compare(table, x="dataset_size"):
    result = compare_laws(table, x)
    json.dumps(asdict(result), allow_nan=False)
    return result


def mixed(table):
    result = mixed_model(table, "dataset_size", confidence=0.95)
    json.dumps(asdict(result), allow_nan=False)
    return result


@pytest.mark.parametrize("law", LAWS)
def test_the_law_of_the_data_is_found(law):
    result = compare(runs(TRUTH[law], noise=0.02))
    assert result.best == law
    weights = {fit.law: fit.weight for fit in result.laws}
    assert sum(weights.values()) == pytest.approx(1)
    assert weights[law] == max(weights.values()) > 0.5
    assert {fit.law: fit.difference for fit in result.laws}[law] == 0


@pytest.mark.parametrize("law", LAWS)
def test_an_exact_law_is_named_without_a_criterion(law):
    result = compare(runs(TRUTH[law]))
    fits = {fit.law: fit for fit in result.laws}
    assert "Exact fit" in result.statement
    assert fits[law].sigma < 1e-7
    assert result.best == law
    assert all(fit.aicc is None and fit.weight is None for fit in result.laws)


def test_parameters_of_the_laws_are_recovered():
    fits = {law: {fit.law: fit for fit in compare(runs(TRUTH[law])).laws}[law] for law in LAWS}
    assert (fits["power law"].a, fits["power law"].b) == pytest.approx((np.log(0.001), 1.7))
    assert fits["x log x"].a == pytest.approx(np.log(0.02))
    assert fits["x log x"].b is None
    assert (fits["exponential"].a, fits["exponential"].b) == pytest.approx((np.log(400), 8e-5))
    assert (fits["linear"].a, fits["linear"].b) == pytest.approx((2000, 0.2))


def test_a_law_with_too_much_curvature_keeps_the_line_positive():
    result = compare(runs(lambda x: 1e-12 * x**4, noise=0.1))
    line = result.laws[LAWS.index("linear")]
    assert line.a + line.b * min(SIZES) > 0
    assert result.best == "power law"


def test_the_criterion_counts_sigma():
    table = runs(noise=0.1)
    fits = {fit.law: fit for fit in compare(table).laws}
    line = fit_line(np.log(table["dataset_size"].to_numpy()), np.log(table["tau"].to_numpy()))
    assert fits["power law"].aicc == pytest.approx(line.aic + 2 + 2 * 3 * 4 / (10 - 3 - 1))
    assert fits["x log x"].n_parameters == 2


def test_equal_seeds_do_not_make_a_law_surer():
    table = runs(noise=0.1)
    several = pd.concat([table.assign(seed=seed) for seed in range(3)])
    for alone, repeated in zip(compare(table).laws, compare(several).laws, strict=True):
        assert repeated.weight == pytest.approx(alone.weight)
    assert compare(several).n_runs == 30


def test_too_few_points_are_said():
    four = compare(runs(noise=0.1, sizes=SIZES[:4]))
    assert len(four.laws) == 4
    assert (four.best, four.laws[0].aicc) == (None, None)
    assert "4 conditions are too few" in four.statement
    assert compare(runs(noise=0.1, sizes=SIZES[:5])).best is not None
    two = compare(runs(noise=0.1, sizes=SIZES[:2], seeds=5))
    assert (two.laws, two.best) == ((), None)
    assert two.statement == "Not comparable: 10 transitions at 2 dataset_size."


def test_equal_taus_do_not_tell_the_flat_laws_apart():
    result = compare(runs().assign(tau=500))
    assert result.best is None
    assert "power law, exponential, linear" in result.statement


def test_small_x_leaves_out_laws_by_name():
    result = compare(runs(lambda x: x**-0.5, noise=0.1, sizes=[0.1, 0.2, 0.4, 0.8, 1.6, 3.2]))
    assert "x log x" in result.statement
    assert len(result.laws) == 3
    with_zero = compare(runs(lambda x: 9 + x, noise=0.1, sizes=[0, 0.1, 0.2, 0.4, 0.8]))
    assert "power law, x log x" in with_zero.statement


def test_censored_runs_are_counted():
    table = runs(noise=0.1)
    table.loc[9, "tau_status"] = "censored"
    result = compare(table)
    assert (result.n_runs, result.n_left_out) == (9, 1)
    assert "1 of 10 runs had no transition" in result.statement


def test_leaving_one_condition_out():
    table = runs(seeds=2)
    assert leave_one_out(table, "dataset_size") == pytest.approx((1.7, 1.7))
    table.loc[table["condition"] == "d9", "tau"] *= 2
    low, high = leave_one_out(table, "dataset_size")
    assert low == pytest.approx(1.7)
    assert high > 1.85
    assert leave_one_out(table[table["condition"].isin(["d0", "d1", "d9"])], "dataset_size") is None
    assert leave_one_out(table.assign(tau_status="censored"), "dataset_size") is None
    assert leave_one_out(table.assign(dataset_size=0), "dataset_size") is None


@pytest.mark.parametrize("number", range(4))
def test_the_mixed_model_agrees_with_the_analysis_of_variance(number):
    """In a balanced design REML is the analysis of variance of condition means."""
    table = runs(noise=0.1, seeds=3, seed=number, condition_noise=0.3)
    log_tau = np.log(table["tau"])
    means = log_tau.groupby(table["condition"], sort=False).mean().to_numpy()
    line = fit_line(np.log(np.array(SIZES)), means)
    within = (log_tau.groupby(table["condition"]).std() ** 2).mean()
    result = mixed(table)
    assert result.exponent == pytest.approx(line.params[1])
    assert result.interval == pytest.approx(tuple(line.conf_int()[1]), rel=1e-4)
    assert result.within_sd == pytest.approx(np.sqrt(within), rel=1e-4)
    between = np.sqrt(line.mse_resid - within / 3)
    assert result.between_sd == pytest.approx(between, rel=1e-4)
    assert result.converged
    assert result.statement == ""


def test_conditions_that_differ_no_more_than_seeds_are_said():
    table = runs(noise=0.3, seeds=3)
    log_tau = np.log(table["tau"]).to_numpy().reshape(10, 3)
    law = np.log([TRUTH["power law"](size) for size in SIZES])
    flat = log_tau - log_tau.mean(axis=1, keepdims=True) + law[:, None]
    result = mixed(table.assign(tau=np.exp(flat).ravel()))
    assert result.exponent == pytest.approx(1.7, abs=1e-6)
    assert result.between_sd == pytest.approx(0, abs=1e-3)
    assert result.interval[0] < 1.7 < result.interval[1]
    assert "no more than their seeds" in result.statement


@pytest.mark.parametrize(
    "table",
    [
        runs(noise=0.1, seeds=2),
        runs(noise=0.1, seeds=5, sizes=SIZES[:2]),
        runs(noise=0.1, seeds=3, sizes=[1000] * 5),
        runs(noise=0.0, seeds=3, condition_noise=0.1),
        runs(noise=0.1, seeds=3).assign(tau=100.0),
        runs(lambda x: 9 + x, noise=0.1, seeds=3, sizes=[0, 1, 2, 3]),
        runs(noise=0.1, seeds=3).assign(tau_status="censored"),
        runs().iloc[:0],
    ],
)
def test_a_mixed_model_that_cannot_be_fitted_is_a_statement(table):
    result = mixed(table)
    assert (result.exponent, result.interval, result.converged) == (None, None, False)
    assert result.statement.startswith("Not estimable: ")


@pytest.mark.parametrize("noise", [1e-5, 1e-3, 3.0])
def test_the_mixed_model_does_not_depend_on_the_scale_of_the_noise(noise):
    result = mixed(runs(noise=noise, seeds=3, condition_noise=noise))
    assert result.interval[0] < 1.7 < result.interval[1]
    assert 0.3 * noise < result.within_sd < 3 * noise
