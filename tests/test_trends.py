import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mbc.trends import monotone_effect

SETTINGS = {"confidence": 0.95, "resamples": 2000, "seed": 0}


def runs(*points):
    """Return runs from pairs of lr and tau such as (0.001, 6), or "6+" for a censored one."""
    tau = [float(str(tau).rstrip("+")) for _, tau in points]
    status = ["censored" if str(tau).endswith("+") else "observed" for _, tau in points]
    lr = [lr for lr, _ in points]
    table = pd.DataFrame({"lr": lr, "tau": tau, "tau_status": status})
    return table.assign(seed=table.groupby("lr").cumcount())


def effect(table, x="lr", **changes):
    result = monotone_effect(table, x, **{**SETTINGS, **changes})
    json.dumps(asdict(result), allow_nan=False)
    return result


def test_the_exact_p_value_of_four_rising_runs_by_hand():
    result = effect(runs((1, 10), (2, 20), (3, 30), (4, 40)))
    assert result.concordance == 1
    assert result.p_value == pytest.approx(2 / 24)  # rising and falling, of 4! orderings
    assert result.smallest_p_value == pytest.approx(2 / 24)
    assert result.p_value_is_exact
    assert result.monotone == "rising"
    assert result.ratio == pytest.approx(4)
    assert (result.ratio_interval, result.ratio_is_lower_bound) == (None, False)
    assert "the ratio has no interval" in result.statement


def test_the_exact_p_value_with_seeds_by_hand():
    """Two runs at each of 3 x: 6! / 2!³ = 90 arrangements, of which 2 are as extreme."""
    table = runs((1, 10), (1, 11), (2, 20), (2, 21), (3, 30), (3, 31))
    assert effect(table).p_value == pytest.approx(2 / 90)


def test_without_ties_and_censoring_it_is_kendalls_tau():
    rng = np.random.default_rng(0)
    for _ in range(5):
        table = runs(*zip(range(1, 8), rng.permutation(7) + 1))
        kendall = stats.kendalltau(table["lr"], table["tau"], method="exact")
        assert effect(table).concordance == pytest.approx(kendall.statistic)
        assert effect(table).p_value == pytest.approx(kendall.pvalue)


def test_drawn_permutations_agree_with_the_exact_test_and_depend_on_the_seed_alone():
    tau = [5, 3, 9, 1, 7, 8, 12, 10, 6, 11]
    table = runs(*zip(range(1, 11), tau))
    kendall = stats.kendalltau(table["lr"], table["tau"], method="exact")
    one, same = effect(table, resamples=20_000), effect(table, resamples=20_000)
    assert not one.p_value_is_exact
    assert one == same
    assert one.p_value == pytest.approx(kendall.pvalue, abs=0.01)
    assert one.p_value != effect(table, resamples=20_000, seed=1).p_value
    rising = effect(runs(*zip(range(1, 21), range(1, 21))))
    assert rising.p_value == pytest.approx(1 / 2001)


@pytest.mark.parametrize("counts", [[1, 1, 1, 1, 1], [3, 3, 3, 3]])
def test_no_effect_is_rejected_no_more_often_than_the_level(counts):
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(100):
        points = [(x, rng.lognormal(5, 1)) for x, count in enumerate(counts) for _ in range(count)]
        table = runs(*[(x, f"{min(t, 200)}+" if t > 200 else t) for x, t in points])
        p_value = effect(table, resamples=200).p_value
        rejected += p_value is not None and p_value <= 0.05
    assert rejected <= 11


def test_a_censored_run_is_later_than_what_was_seen_up_to_its_last_step():
    result = effect(runs((1, 10), (2, 20), (3, "20+")))
    assert result.concordance == 1
    assert result.monotone == "rising"
    assert result.ratio == pytest.approx(2)
    assert result.ratio_is_lower_bound
    assert result.ratio_interval is None
    assert result.largest_over_smallest_is_lower_bound
    unknown = effect(runs((1, 10), (2, 20), (3, "15+")))
    assert unknown.concordance == 1  # of the two pairs that are known
    assert unknown.monotone == "neither"


def test_a_censored_run_at_the_smallest_x_bounds_the_ratio_from_above():
    result = effect(runs((1, "30+"), (2, 20), (3, 10)))
    assert result.monotone == "falling"
    assert result.ratio == pytest.approx(1 / 3)
    assert (result.ratio_is_lower_bound, result.ratio_is_upper_bound) == (False, True)
    assert result.largest_over_smallest_response == pytest.approx(3)
    both = effect(runs((1, "30+"), (2, 20), (3, "30+")))
    assert both.ratio is None
    assert "Both ends have censored runs" in both.statement
    assert both.largest_over_smallest_response == pytest.approx(1.5)


def test_neither_direction_and_the_largest_ratio_at_whatever_x():
    result = effect(runs((1, 20), (2, 36), (3, 30)))
    assert result.monotone == "neither"
    assert result.ratio == pytest.approx(1.5)
    assert result.largest_over_smallest_response == pytest.approx(1.8)
    assert effect(runs((1, 20), (2, 20), (3, 20))).monotone == "neither"


def test_a_ratio_of_two_x_compares_each_seed_with_itself():
    """Of two x it is Student's paired interval."""
    one, other = np.array([100, 150, 90, 210.0]), np.array([190, 340, 170, 450.0])
    result = effect(runs(*[(1, tau) for tau in one], *[(2, tau) for tau in other]))
    paired = stats.ttest_1samp(np.log(other / one), 0).confidence_interval(0.95)
    assert result.ratio == pytest.approx(np.exp(np.log(other / one).mean()))
    assert result.ratio_interval == pytest.approx(tuple(np.exp(paired)))
    assert "direction is tested" in result.statement


def test_all_x_tell_the_spread_of_a_ratio():
    """Five x with two seeds each: four degrees of freedom instead of one."""
    noise = [1.1, 1.0, 0.9, 1.2, 1.0, 1.1, 1.3, 1.0, 0.8, 1.0]
    points = [(x, 100 * x * noise[2 * x - 2 + i]) for x in range(1, 6) for i in (0, 1)]
    wide = effect(runs(*points[:2], *points[-2:])).ratio_interval
    low, high = effect(runs(*points)).ratio_interval
    assert wide[0] < low < 5 < high < wide[1]
    late = effect(runs(*points[:2], (2, "900+"), (2, 30), *points[4:]))
    assert late.ratio_interval is not None  # without the x that has a censored run


def test_seeds_that_are_not_at_both_x_have_no_interval():
    table = runs((1, 10), (1, 12), (2, 20), (2, 25))
    assert effect(table.assign(seed=[0, 1, 2, 3])).ratio_interval is None
    assert effect(table.assign(seed=[0, 1, 1, 2])).ratio_interval is None


@pytest.mark.parametrize("seed_noise", [0.0, 0.5])
def test_the_interval_of_a_ratio_covers_with_two_seeds(seed_noise):
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        fast = rng.lognormal(0, seed_noise, 2)
        points = [
            (x, 100 * x * fast[seed] * rng.lognormal(0, 0.2)) for x in (1, 2, 3) for seed in (0, 1)
        ]
        low, high = effect(runs(*points), resamples=10).ratio_interval
        hits += low < 3 < high
    assert 0.90 <= hits / 200 <= 0.99


def test_the_response_can_be_in_examples():
    table = runs((8, 40), (16, 20), (32, 10))
    table["tau_examples"] = table["tau"] * table["lr"] ** 2
    assert effect(table).monotone == "falling"
    assert effect(table, response="tau_examples").monotone == "rising"


def test_zero_is_a_value_of_x():
    result = effect(runs((0.0, 10), (0.1, 20), (0.2, 30)))
    assert result.n_points == 3
    assert result.ratio == pytest.approx(3)


def test_diverged_and_undefined_runs_are_counted_not_used():
    table = runs((1, 10), (2, 20), (3, 30), (4, 1), (5, 1))
    table["tau"] = table["tau"].astype("Int64")
    table.loc[3, "tau_status"] = "diverged"
    table.loc[4, ["tau", "tau_status"]] = [pd.NA, "undefined"]
    result = effect(table)
    assert (result.n_observed, result.n_left_out, result.n_points) == (3, 2, 3)
    assert result.monotone == "rising"


def test_two_x_have_a_ratio_and_no_direction():
    result = effect(runs((1, 10), (1, 12), (2, 20), (2, 25)))
    assert (result.p_value, result.concordance, result.monotone) == (None, None, None)
    assert result.ratio_interval[0] < 2.04 < result.ratio_interval[1]
    assert "Only 2 different lr" in result.statement


@pytest.mark.parametrize("points", [(), ((1, 10),), ((1, 10), (1, 12))])
def test_one_x_or_none_is_a_statement(points):
    result = effect(runs(*points))
    assert (result.p_value, result.ratio) == (None, None)
    assert result.statement.startswith("Not estimable: ")


def test_all_censored_or_all_equal_has_no_known_order():
    censored = effect(runs((1, "10+"), (2, "10+"), (3, "10+")))
    assert (censored.p_value, censored.ratio, censored.monotone) == (None, None, "neither")
    assert "No pair of runs" in censored.statement
    equal = effect(runs(*[(x, 10) for x in (1, 2, 3) for _ in range(2)]))
    assert equal.p_value is None
    assert (equal.ratio, equal.ratio_interval) == (1, None)


def test_an_interval_beyond_all_numbers_is_left_out():
    table = runs((1, 1), (1, 1000), (2, 30), (3, 1000), (3, 1))
    assert effect(table).ratio_interval is not None
    assert effect(table, confidence=0.99999).ratio_interval is None
