import math

import numpy as np
import pandas as pd
import pytest

from mbc.settings import TransitionSettings
from mbc.transitions import Moment, character_tau, measure, onset, plateau, waiting_time
from stages import transitions
from stages.files import read_json, write_json, write_yaml

K = 10
LOG_K = math.log(K)


@pytest.fixture
def settings(params):
    return TransitionSettings(**params["transition"])


def moment(step, observed, after):
    return Moment(step, observed, after, examples=128 * step)


def history(candidate_over_log_k, z_gap=None, spacing=100):
    n = len(candidate_over_log_k)
    return pd.DataFrame(
        {
            "step": np.arange(n) * spacing,
            "examples": np.arange(n) * spacing * 128,
            "candidate_loss": np.array(candidate_over_log_k) * LOG_K,
            "z_gap": np.zeros(n) if z_gap is None else z_gap,
            "z_gap_string": np.zeros(n) if z_gap is None else 2 * np.array(z_gap),
            "b_gap": 0.25,
            "b_gap_string": 0.25,
            "fibre_mass": K / 36,
            "joint_loss": 14.0,
            "loss_character_1": [3.6, *[1.9] * (n - 1)],
            "loss_character_2": [3.6, *[1.6] * (n - 1)],
        }
    )


CURVE = [1.5, 1.02, 1.0, 1.0, 1.1, 1.0, 0.85, 0.45, 0.2, 0.05]


def test_a_known_run_has_its_known_moments(settings):
    z_gap = [0, 0, 0, 0.06, 0.2, 0.3, 0.5, 1, 2, 3]
    result = measure(history(CURVE, z_gap), K, settings)
    assert result.tau == moment(700, True, 600)
    assert result.onset == moment(400, True, 300)
    assert result.onset_string == moment(300, True, 200)
    assert result.loss_onset == moment(600, True, 500)
    assert not result.marginal.observed
    assert result.plateau_reached == moment(100, True, 0)
    assert result.end == moment(900, True, 800)
    assert result.width == 300
    assert result.lead_fraction == pytest.approx((600 - 400) / 600)
    assert result.lead_fraction_string == pytest.approx((600 - 300) / 600)
    assert result.plateau.ratio == pytest.approx(1.01)  # steps 100 and 200, of 70 to 210
    assert result.plateau.height == pytest.approx(1.01 * LOG_K)
    assert result.plateau.evaluations == 2
    assert result.plateau.peak_ratio == pytest.approx(1.1)


@pytest.mark.parametrize(("fraction", "step"), [(0.9, 600), (0.5, 700), (0.3, 800), (0.1, 900)])
def test_tau_at_any_threshold(fraction, step):
    assert waiting_time(history(CURVE), K, fraction).step == step


def test_character_tau_is_where_the_mean_by_character_falls_below_its_part_of_log_36():
    assert character_tau(history(CURVE), 0.5) == moment(100, True, 0)
    assert character_tau(history(CURVE), 0.45) == moment(900, False, 900)


def test_tau_is_the_first_crossing_even_if_the_loss_comes_back():
    assert waiting_time(history([1, 1, 0.4, 1.2, 0.3]), K, 0.5).step == 200


def test_a_run_without_transition_is_censored_not_dropped(settings):
    result = measure(history([1.4, 1.0, 1.0, 1.0, 1.0]), K, settings)
    assert result.tau == moment(400, False, 400)
    assert not result.onset.observed
    assert result.width is None
    assert result.lead_fraction is None
    assert result.plateau.ratio == pytest.approx(1.0)


def test_k_1_has_no_moments(settings):
    result = measure(history([0.0, 0.0]), 1, settings)
    assert result.character_tau == moment(100, True, 0)
    assert all(v is None for name, v in vars(result).items() if name != "character_tau")


def test_an_empty_window_gives_no_plateau():
    curve = history([1.2, 0.2])
    assert plateau(curve, K, waiting_time(curve, K, 0.5), (0.1, 0.3)) is None


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ([0, 0.2, 0.2, 0.2, 0.2], moment(100, True, 0)),
        ([0, 0.2, 0, 0.2, 0.2, 0.2], moment(300, True, 200)),
        ([0.2, 0.2, 0.2], moment(0, True, -1)),
        ([0, 0.2, 0.2, float("nan"), 0.2, 0.2, 0.2], moment(400, True, 300)),
        ([0, 0.2, 0.2, float("nan"), 0.2], moment(300, False, 300)),
        ([0, 0, 0.2, 0.2], moment(100, False, 100)),
        ([0.2, 0.2], moment(0, False, 0)),
        ([0, 0.1, 0.1, 0.1], moment(300, False, 300)),
    ],
)
def test_onset_needs_evaluations_in_a_row(gaps, expected):
    table = history([1] * len(gaps), gaps)
    assert onset(table, gap=0.1, evaluations=3, column="z_gap") == expected


def test_onset_of_another_gap():
    table = history([1, 1, 1]).assign(z_gap_string=[0.2, 0.2, 0.2])
    assert onset(table, 0.1, 3, column="z_gap_string").observed
    assert not onset(table, 0.1, 3, column="z_gap").observed


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, moment(200, True, 100)),
        ({"b_gap": 0.4}, moment(900, False, 900)),
        ({"fibre_mass": 0.89}, moment(900, False, 900)),
        ({"joint_loss": 1.3 * LOG_K}, moment(900, False, 900)),
        ({"z_gap": 0.2}, moment(900, False, 900)),  # the selector is used from the start
        ({"z_gap": [*[0.0] * 6, *[0.5] * 4]}, moment(200, True, 100)),
        ({"z_gap": [*[0.0] * 2, *[0.5] * 8]}, moment(900, False, 900)),
    ],
)
def test_the_marginal_is_learned_before_z_is_used_or_not(settings, changes, expected):
    known = {"joint_loss": 1.1 * LOG_K, "fibre_mass": 0.95, "b_gap": 0.6}
    table = history([1.0] * 10).assign(**{**known, **changes})
    table.loc[:1, ["joint_loss", "fibre_mass"]] = [14.0, K / 36]
    assert measure(table, K, settings).marginal == expected


@pytest.mark.parametrize("k", [1, 4])
def test_a_run_whose_loss_was_never_finite_is_in_the_table(make_condition, params, tmp_path, k):
    names = ["base", "forward_base", "transfer_base"]
    for name in names:
        direction = "forward" if name == "forward_base" else "backward"
        condition = make_condition(k=k, n_b=40, direction=direction)
        write_yaml(tmp_path / "conditions" / f"{name}.yaml", condition.model_dump())
        folder = tmp_path / "runs" / f"{name}-0"
        outcome = {"status": "diverged", "last_step": 2, "diverged_at": 1, "versions": {}}
        write_json(folder / "outcome.json", outcome)
        history([1.5]).assign(loss_character_2=3.6).to_csv(folder / "history.csv", index=False)
    (folder / "history.csv").write_text("\n")  # as pandas writes a table without rows and columns
    planned = {"conditions": dict.fromkeys(names[:2]), "transfers": ["base"], "seeds": [0]}
    write_yaml(tmp_path / "params.yaml", {**planned, "transition": params["transition"]})
    inputs = [tmp_path / name for name in ("params.yaml", "conditions", "runs")]
    outputs = [tmp_path / name for name in ("runs.csv", "transitions.json")]
    transitions.main(*map(str, [*inputs, *outputs]))
    table = pd.read_csv(outputs[0]).set_index("run")
    row, other = table.loc["transfer_base-0"], table.loc["base-0"]
    statuses = [name for name in table if name.endswith("_status")]
    assert row[statuses].tolist() == other[statuses].tolist()
    assert row[["run_status", "character_tau_status"]].tolist() == ["diverged"] * 2
    assert row["tau_status"] == ("undefined" if k == 1 else "diverged")
    assert row["character_tau"] == 0
    moment = read_json(outputs[1])["transfer_base-0"]["character_tau"]
    assert moment == {"step": 0, "observed": False, "after": 0, "examples": 0}
