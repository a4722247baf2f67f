import json

import pandas as pd
import pytest

from mbc.report import FIGURES, report, run_lines
from mbc.summary import summarise


@pytest.fixture
def table():
    moments = ("tau", "onset", "loss_onset")
    rows = [
        ("base", 20, "observed", 300),
        ("k36", 36, "censored", 900),
        ("k01", 1, "undefined", None),
        ("hot", 20, "diverged", 70),
    ]
    return pd.DataFrame(
        [
            {
                "run": f"{name}-42",
                "condition": name,
                "seed": 42,
                "direction": "backward",
                "k": k,
                "n_b": 100,
                "dataset_size": 100 * k,
                "run_status": "transition_passed",
                "last_step": 900,
                "plateau_ratio": 1.01 if step else None,
                "plateau_z_gap": 0.01 if step else None,
                "plateau_peak_ratio": 1.1 if step else None,
                "plateau_fibre_mass": k / 36,
                "lead_fraction": 0.5 if status == "observed" else None,
                **dict.fromkeys(moments, step),
                **{f"{m}_status": status for m in moments},
            }
            for name, k, status, step in rows
        ]
    ).astype(dict.fromkeys(moments, "Int64"))


@pytest.fixture
def scaling():
    fit = {"n_runs": 3, "n_left_out": 1, "statement": "Only 2 different k: a slope."}
    full = {
        **fit,
        "exponent": 1.2,
        "bootstrap_interval": [1.1, 1.3],
        "hc3_interval": [1.0, 1.4],
        "r_squared": 0.98,
    }
    test = {"margin": 0.1, "level": 0.05, "equivalent": True, "p_value": 0.01}
    none = {"margin": 0.1, "level": 0.05, "equivalent": False}
    return {
        "dataset_size": full,
        "thresholds": {"0.3": {**full, "exponent": 1.25}, "0.5": full, "0.7": fit},
        "fixed_size": {"1000": {**full, "equivalence": test}, "2000": {**fit, "equivalence": none}},
    }


def test_summary_names_what_is_known_and_nothing_else(table, scaling):
    summary = summarise(table, scaling)
    json.dumps(summary, allow_nan=False)
    assert summary["runs"] == {"total": 4, "observed": 1, "censored": 1, "diverged": 1}
    assert summary["tau_base"] == 300
    assert summary["dataset_size"]["exponent"] == 1.2
    assert summary["dataset_size"]["exponent_over_thresholds"] == pytest.approx(0.05)
    assert summary["fixed_size"]["1000"]["equivalent_to_0"]
    assert summary["fixed_size"]["2000"]["low"] is None
    assert summary["lead_fraction"] == {"mean": 0.5, "sd": None}
    assert summary["plateau"]["fibre_mass_over_chance"] == pytest.approx(1)


def test_summary_of_nothing_observed(table, scaling):
    summary = summarise(table.assign(tau_status="censored"), {**scaling, "thresholds": {}})
    assert summary["tau_base"] is None
    assert summary["dataset_size"]["exponent_over_thresholds"] is None


def test_report_has_every_figure_and_run_and_says_what_is_censored(table, scaling):
    text = report(table, scaling, summarise(table, scaling), 0.1, "plots")
    for name, _, _ in FIGURES:
        assert f"(plots/{name}.png)" in text
        assert f"(plots/{name}.csv)" in text
    assert "4 runs at scale 0.1" in text
    assert "1 did not within their step budget, 1 diverged" in text
    assert "1.20 [1.10, 1.30]" in text
    assert "only directions can be compared" in text
    assert "nan" not in text
    taus = dict(zip(run_lines(table)["run"], run_lines(table)["τ"], strict=True))
    assert taus == {
        "base-42": "300",
        "k36-42": "> 900",
        "k01-42": "undefined",
        "hot-42": "diverged",
    }
