import pandas as pd
import pytest

from mbc.effects import controls, directions, ratios, transfers
from mbc.runs import RANDOM_WEIGHTS


def runs(*rows):
    columns = ["condition", "start_from", "direction", "k", "seed", "tau", "tau_status"]
    return pd.DataFrame(rows, columns=columns).astype({"tau": "Int64"})


def test_directions_compare_runs_of_the_same_k_and_seed():
    table = runs(
        ("k05", RANDOM_WEIGHTS, "backward", 5, 1, 100, "observed"),
        ("k05", RANDOM_WEIGHTS, "backward", 5, 2, 100, "observed"),
        ("f05", RANDOM_WEIGHTS, "forward", 5, 1, 200, "observed"),
        ("f05", RANDOM_WEIGHTS, "forward", 5, 2, 800, "observed"),
        ("k10", RANDOM_WEIGHTS, "backward", 10, 1, 300, "observed"),
        ("f10", RANDOM_WEIGHTS, "forward", 10, 1, 900, "censored"),
    )
    five, ten = directions(table, "tau")
    assert (five.k, five.n_seeds, five.n_left_out) == (5, 2, 0)
    assert five.value == pytest.approx(4)
    assert (five.low, five.high) == (pytest.approx(2), pytest.approx(8))
    assert (ten.value, ten.low, ten.n_seeds, ten.n_left_out) == (None, None, 0, 1)


def test_a_single_seed_has_no_interval():
    one = runs(("a", RANDOM_WEIGHTS, "backward", 5, 1, 100, "observed"))
    (ratio,) = ratios(one.assign(tau=150), one, "k", "tau")
    assert ratio.value == pytest.approx(1.5)
    assert ratio.low is ratio.high is None


def test_transfer_above_1_means_that_forward_training_helped():
    table = runs(
        ("base", RANDOM_WEIGHTS, "backward", 20, 1, 400, "observed"),
        ("other", RANDOM_WEIGHTS, "backward", 20, 1, 9, "observed"),
        ("transfer_base", "forward_base", "backward", 20, 1, 200, "observed"),
    )
    (ratio,) = transfers(table, "tau")
    assert (ratio.condition, ratio.value) == ("base", pytest.approx(2))
    assert transfers(table[:2], "tau") == []


def test_transfers_of_two_conditions_of_one_k_are_told_apart():
    table = runs(
        ("k05", RANDOM_WEIGHTS, "backward", 5, 1, 100, "observed"),
        ("d10k_k05", RANDOM_WEIGHTS, "backward", 5, 1, 300, "observed"),
        ("transfer_k05", "forward_k05", "backward", 5, 1, 200, "observed"),
        ("transfer_d10k_k05", "forward_d10k_k05", "backward", 5, 1, 100, "observed"),
    )
    found = {ratio.condition: ratio.value for ratio in transfers(table, "tau")}
    assert found == {"k05": pytest.approx(0.5), "d10k_k05": pytest.approx(3)}


def test_controls_have_no_missing_numbers():
    row = {
        "run": "linear-1",
        "k": 5,
        "network": "linear",
        **dict.fromkeys(("tau_status", "marginal_status"), "censored"),
        "marginal": 10,
        **dict.fromkeys(
            ("log_k", "final_ratio", "largest_z_gap", "plateau_joint_loss", "plateau_fibre_mass"),
            1.0,
        ),
        "plateau_b_gap": float("nan"),
        "plateau_z_gap": 0.0,
    }
    (control,) = controls(
        pd.DataFrame([row, {**row, "network": "transformer"}]), "network", "linear"
    )
    assert control["run"] == "linear-1"
    assert control["b_gap"] is None
    assert control["z_gap"] == 0
