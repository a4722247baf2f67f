import json
import math

import pytest

from mbc.report import report
from mbc.report_texts import FIGURES, MAIN_FIGURES
from mbc.runs import RANDOM_WEIGHTS
from mbc.settings import NOISE_SWEEPS
from mbc.summary import summarise
from tests.test_mechanism_report import mechanism
from tests.test_runs_report import runs_of_every_status

DRAWN = [name for name, _, _ in FIGURES if name != "linear"]


@pytest.fixture
def table():
    runs = runs_of_every_status()
    return runs.assign(
        seed=42,
        network="transformer",
        label_noise=0.0,
        fibre="distinct",
        start_from=RANDOM_WEIGHTS,
        checkpoint_every=0,
        plateau_z_gap=[0.01, 0.01, None, 0.01],
        plateau_fibre_mass=runs["k"] / 36,
        lead_fraction=[0.5, None, None, None],
        lead_fraction_string=0.6,
        tau_loss_character_1=[0.95 * math.log(36), None, None, None],
    )


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
    test["interval"] = [-0.02, 0.05]
    none = {"margin": 0.1, "level": 0.05, "equivalent": False}
    return {
        "confidence": 0.95,
        "dataset_size": {
            **full,
            "censored": {"exponent": 1.22, "interval": [1.1, 1.35], "statement": ""}
            | {"n_censored": 1},
            "mixed_model": {"statement": "Fewer than 3 seeds."},
            "leave_one_out": [1.15, 1.25],
            "laws": {
                "best": "power law",
                "laws": [{"law": "power law", "difference": 0.0}, {"law": "linear"}],
                "statement": "",
            },
        },
        "thresholds": {"0.3": {**full, "exponent": 1.25}, "0.5": full, "0.7": fit},
        "fixed_size": {"1000": {**full, "equivalence": test}, "2000": {**fit, "equivalence": none}},
    }


@pytest.fixture
def effects():
    ratio = {"condition": "k05", "k": 5, "value": 3.0, "n_seeds": 1, "n_left_out": 0}
    return {
        "batch_size": {"examples": {"largest_over_smallest_response": 1.8}},
        "learning_rate": {"steps": {}},
        "direction_by_tau": [ratio, {**ratio, "condition": "k36", "k": 36}],
        "direction_by_character_tau": [{"condition": "k05", "k": 5, "n_seeds": 0, "n_left_out": 1}],
        "transfer_by_tau": [],
        "transfer_by_character_tau": [ratio],
    }


@pytest.fixture
def claims():
    ours = {
        "value": 1.2,
        "low": 1.1,
        "high": 1.3,
        "n_runs": 10,
        "note": "a note",
        "is_share": False,
    }
    claim = {"section": "3.2", "claim": "It grows", "ours": ours, "rule": "a rule"}
    claim |= {"added": False, "remark": ""}
    none = {"n_runs": 0, "note": "", "is_share": False}
    share = {"value": 0.75, "low": 0.5, "high": 0.9, "n_runs": 4, "note": "3 of 4 runs"}
    return {
        "exponent": {**claim, "verdict": "reproduced"},
        "saddle": {**claim, "ours": none, "verdict": "not run"},
        "few": {**claim, "ours": none, "verdict": "undecided: too few runs"},
        "batch_size_examples": {**claim, "ours": {**ours, "value": 1.8, "bound": "at least"}}
        | {"verdict": "reproduced", "claim": "P(A|B)"},
        "learning_rate_ratio": {**claim, "ours": none}
        | {"verdict": "undecided: runs ended too early"},
        "lead_fraction": {**claim, "verdict": "same direction, other size", "remark": "Unlike."}
        | {"paper": 0.5},
        "onset_before_loss_character": {**claim, "ours": {**share, "is_share": True}}
        | {"verdict": "reproduced", "added": True},
    }


def test_summary_names_what_is_known_and_nothing_else(table, scaling, claims):
    summary = summarise(table, table, scaling, claims)
    json.dumps(summary, allow_nan=False)
    assert summary["runs"] == {"total": 4, "observed": 1, "censored": 1, "diverged": 1}
    assert summary["tau_base"] == 300
    assert summary["dataset_size"]["exponent"] == 1.22  # with the run that had no transition
    assert summary["dataset_size"]["runs_without_transition"] == 1
    assert summary["dataset_size"]["exponent_over_thresholds"] == pytest.approx(0.05)
    assert summary["fixed_size"]["1000"]["equivalent_to_0"]
    assert summary["fixed_size"]["1000"]["low"] == -0.02
    assert summary["fixed_size"]["2000"]["low"] is None
    assert summary["lead_fraction"] == 1.2
    assert summary["first_character_at_tau_base"] == pytest.approx(0.95)
    assert summary["plateau"]["fibre_mass_over_chance"] == pytest.approx(1)
    assert summary["batch_size_ratio_examples"] == 1.8
    assert summary["learning_rate_ratio_steps"] is None
    assert summary["claims"]["reproduced"] == summary["claims"]["undecided"] == 2  # the paper's own


def test_summary_of_nothing_observed(table, scaling, claims):
    bare = {**scaling, "thresholds": {}}
    summary = summarise(*[table.assign(tau_status="censored")] * 2, bare, claims)
    assert summary["tau_base"] is None
    assert summary["dataset_size"]["exponent_over_thresholds"] is None


def test_report_has_every_figure_and_run_and_says_what_is_censored(table, scaling, effects, claims):
    summary = summarise(table, table, scaling, claims)
    varied = {"lr": [1e-3, 1e-2], "batch_size": [64, 128], "label_noise": [0.0, 0.1]}
    sweep = table[table["k"] == 20].assign(tau_examples=[38_400, 900], **varied)
    sweeps = dict.fromkeys(NOISE_SWEEPS, sweep)
    sweeps |= dict.fromkeys(("schedule", "initialisation"), table[:0])
    sizes = table.assign(tau=[300, 600, 1, 1], loss_onset=[270, 450, 1, 1], tau_status="observed")
    sweeps["dataset_size"] = sizes[:2]
    arguments = (scaling, effects, claims, sweeps, mechanism(), summary)
    text = report(table, *arguments, 0.1, "plots", DRAWN, {"dataset_size": {"base": 400}})
    assert "paper's τ" not in text
    assert "no transition in a run" in text
    assert "Of 6 claims of the paper: **reproduced** (2): exponent, batch size examples;" in text
    added = (
        "Of 1 other readings and tests: **reproduced** (1): onset before loss (first character)."
    )
    assert added in text
    assert "75% of runs [50%, 90%] (3 of 4 runs)" in text
    assert "still 0.95 log 36 in the base condition: what falls first" in text
    assert "0.5 log k takes 10% of τ at D = 2,000 and 25% at D = 3,600." in text
    assert "| Unlike. " in text
    assert "has a reason that was not varied, or one of seeds, of which there is one." in text
    assert "P(A\\|B)" in text
    assert "| ≥ 1.8 " in text
    places = [text.index(f"(plots/{name}.png)") for name in MAIN_FIGURES]
    assert max(places) < text.index("## Where our numbers differ") < text.index("## Fits")
    assert "38400" in text
    for name, _, _ in FIGURES:
        assert (f"(plots/{name}.png)" in text) == (name in DRAWN)
        assert (f"(plots/{name}.csv)" in text) == (name in DRAWN)
    assert "4 runs at scale 0.1" in text
    assert "1 did not within their step budget, 1 diverged" in text
    assert "power 1.22 [1.10, 1.35], with the 1 runs without a transition as bounds" in text
    assert "numbers are for scale 1" in text
    assert "nan" not in text
    assert "1.2 [1.1, 1.3] (a note)" in text
    assert "**undecided: too few runs**" in text
    assert "- It grows: a rule." in text
    assert "the exponent is 1.220 [1.100, 1.350]" in text
    assert "Fewer than 3 seeds." in text
