import math

import pandas as pd
import pytest

from mbc.runs_report import not_looked_into, run_lines


def runs_of_every_status():
    """Return what the report reads of four runs: observed, censored, undefined and diverged."""
    moments = ("tau", "character_tau", "onset", "onset_string", "loss_onset")
    rows = [
        ("base", 20, "observed", 300),
        ("k36", 36, "censored", 900),
        ("k01", 1, "undefined", None),
        ("hot", 20, "diverged", 70),
    ]
    return pd.DataFrame(
        [
            {
                **{"run": f"{name}-42", "condition": name, "direction": "backward"},
                **{"k": k, "n_b": 100, "dataset_size": 100 * k},
                **{"run_status": "transition_passed", "last_step": 900, "diverged_at": None},
                "checkpoint_every": 10,
                "plateau_ratio": 1.01 if step else None,
                "plateau_peak_ratio": 1.1 if step else None,
                "tau_loss_character_1": 0.9 * math.log(36) if status == "observed" else None,
                **dict.fromkeys(moments, step),
                **{f"{m}_status": status for m in moments},
            }
            for name, k, status, step in rows
        ]
    ).astype(dict.fromkeys(moments, "Int64"))


@pytest.fixture
def table():
    return runs_of_every_status()


def test_moments_that_were_not_seen_are_said_to_be_so(table):
    lines = run_lines(table, {})
    assert lines["τ"].tolist() == ["300", "> 900", "undefined", "diverged"]
    assert lines["first character at τ / log 36"].tolist() == ["0.90", "", "", ""]
    assert lines["plateau / log k"].tolist() == ["1.01", "1.01", "", "1.01"]
    assert "paper's τ" not in lines


def test_a_forward_run_has_no_plateau_and_no_onset(table):
    lines = run_lines(table.assign(direction="forward"), {})
    for column in ("onset", "onset, whole answer", "plateau / log k", "peak / log k"):
        assert lines[column].tolist() == [""] * 4


def test_a_diverged_run_ends_at_its_first_loss_that_was_not_finite(table):
    table.loc[table["run"] == "hot-42", ["run_status", "diverged_at"]] = "diverged", 861
    assert not_looked_into(table[:3]) == []
    assert not_looked_into(table) == ["Not looked into, because they diverged: hot-42."]
    ended = run_lines(table, {}).set_index("run")["ended"]
    assert ended["hot-42"] == "diverged at 861"
    assert ended["base-42"] == "at 900, after its transition"


def test_at_scale_1_the_papers_waiting_times_stand_beside_ours(table):
    times = {"dataset_size": {"base": 400, "k36": 800}}
    lines = run_lines(table, times).set_index("run")
    assert lines["paper's τ"].to_dict() == {
        **{"base-42": "400", "k36-42": "800", "k01-42": "", "hot-42": ""}
    }
    assert lines["τ / paper's"].tolist().count("") == 3
    assert lines.loc["base-42", "τ / paper's"] == "0.75"
    both = run_lines(table, {**times, "batch_size": {"base": 200}}).iloc[0]
    assert both["paper's τ"] == "200 to 400"
    assert both["τ / paper's"] == "0.75 to 1.50"
