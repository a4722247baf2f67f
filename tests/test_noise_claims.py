import numpy as np
import pandas as pd
import pytest

from mbc.claims import CUT_SHORT, NOT_REPRODUCED, NOT_RUN, OTHER_SIZE, REPRODUCED, TOO_FEW
from mbc.noise_claims import judge_noise, ratio_between
from stages.files import read_yaml
from tests.conftest import ROOT

RATES = [3e-4, 5e-4, 1e-3, 2e-3, 5e-3]


@pytest.fixture(scope="module")
def paper():
    return read_yaml(ROOT / "paper.yaml")


def runs(x, values, times, status="observed", spacing=50):
    """Return a run for each value of x; of a time such as "900+" a censored one."""
    steps = [float(str(time).rstrip("+")) for time in times]
    late = [str(time).endswith("+") for time in times]
    table = pd.DataFrame(
        {
            **{x: values, "tau": steps, "tau_examples": [128 * step for step in steps]},
            "tau_after": [step if end else step - spacing for step, end in zip(steps, late)],
            "tau_status": ["censored" if end else status for end in late],
            **{"loss_onset_status": "censored", "final_ratio": 1.0, "last_step": steps},
        }
    )
    return table.assign(seed=table.groupby(x).cumcount())


def sweeps(rates=(2100, 2200, 3400, 7550, "50000+"), noise=(3200, 5000, 51_170)):
    batches = runs("batch_size", [32, 64, 128, 256, 512], [23_200, 7200, 3200, 1600, 1000])
    batches["tau_examples"] = batches["tau"] * batches["batch_size"]
    return {
        "batch_size": batches,
        "learning_rate": runs("lr", RATES, rates),
        "label_noise": runs("label_noise", [0.0, 0.1, 0.2], noise),
    }


def trend(concordance, p_value):
    found = {"concordance": concordance, "p_value": p_value, "statement": "Too few."}
    return {**found, "n_observed": 5, "n_censored": 0}


TRENDS = {
    "batch_size": {"examples": trend(-0.8, 0.02)},
    "learning_rate": {"steps": trend(1.0, 0.017)},
}


def verdicts(paper, **changes):
    return {name: verdict for name, (_, verdict, _) in judge_noise(paper, changes, TRENDS).items()}


def test_the_papers_own_numbers_are_reproduced(paper):
    found = verdicts(paper, **sweeps())
    # its two lowest learning rates lie 5% apart, in single runs
    assert found.pop("learning_rate_monotone") == TOO_FEW
    assert set(found.values()) == {REPRODUCED}


def test_a_bound_is_no_estimate(paper):
    assert verdicts(paper, **sweeps(noise=(3400, 5000, "50000+")))["label_noise"] == CUT_SHORT
    assert verdicts(paper, **sweeps(noise=(1000, 5000, "50000+")))["label_noise"] == OTHER_SIZE
    found = judge_noise(paper, sweeps(noise=(3400, 5000, "50000+")), TRENDS)["label_noise"][0]
    assert found.bound == "at least"
    assert found.value == pytest.approx(50_000 / 3400)


def test_only_the_settings_that_the_paper_compares_count(paper):
    parts = sweeps()
    parts["batch_size"] = parts["batch_size"].iloc[1:]  # without 32
    found = verdicts(paper, **parts)
    assert found["batch_size_steps"] == found["batch_size_examples"] == NOT_RUN
    flat = sweeps()
    flat["batch_size"]["tau_examples"] = [32, 64, 38, 256, 512]  # the largest is slowest
    assert verdicts(paper, **flat)["batch_size_examples"] == TOO_FEW  # single runs, 25% apart
    flat["batch_size"]["tau_examples"] = [32, 64, 50, 256, 512]
    assert verdicts(paper, **flat)["batch_size_examples"] == NOT_REPRODUCED


@pytest.mark.parametrize(
    ("rates", "verdict"),
    [
        ((2100, 2700, 3500, 7550, 9500), REPRODUCED),
        ((2100, 2700, 3500, 7550, 9000), TOO_FEW),  # a small rise between single runs
        ((2150, 2150, 3400, 7550, "50000+"), TOO_FEW),  # equal on the grid of evaluations
        ((2100, 2120, 3400, 7550, "50000+"), TOO_FEW),
        ((2100, 2200, 1400, 7550, "50000+"), NOT_REPRODUCED),
        ((2100, 2200, 1900, 7550, "50000+"), TOO_FEW),  # a small fall between single runs
        ((2100, 2200, 3400, "50000+", "50000+"), TOO_FEW),
        ((2100, 2200, 3400, "50000+", 9000), NOT_REPRODUCED),
    ],
)
def test_a_rise_or_fall_is_one_beyond_the_spacing_of_evaluations(paper, rates, verdict):
    assert verdicts(paper, **sweeps(rates=rates))["learning_rate_monotone"] == verdict


def test_a_rate_at_which_all_diverge_has_no_transition(paper):
    parts = sweeps()
    parts["learning_rate"].loc[4, "tau_status"] = "diverged"
    assert verdicts(paper, **parts)["learning_rate_limit"] == REPRODUCED
    assert verdicts(paper, **sweeps(rates=(1, 2, 3, 4, 5)))["learning_rate_limit"] == NOT_REPRODUCED
    parts["learning_rate"].loc[4, ["tau_status", "loss_onset_status"]] = ["censored", "observed"]
    assert verdicts(paper, **parts)["learning_rate_limit"] == CUT_SHORT  # on its way at the end
    parts["learning_rate"] = parts["learning_rate"].iloc[:1]
    found = verdicts(paper, **parts)
    assert found["learning_rate_limit"] == found["learning_rate_monotone"] == NOT_RUN


def test_seeds_give_an_interval_that_covers_the_truth():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):
        times = np.exp(np.repeat([7.0, 8.0], 3) + 0.3 * rng.standard_normal(6)).round()
        found = ratio_between(runs("lr", [1] * 3 + [2] * 3, times), "lr", [2, 1], "tau")
        covered += found.low < np.e < found.high
    assert 0.9 <= covered / 200 <= 0.99


def test_both_ends_censored_have_no_ratio():
    found = ratio_between(runs("lr", [1, 2], ["9+", "9+"]), "lr", [2, 1], "tau")
    assert found.value is None
    early = ratio_between(runs("lr", [1, 2], ["9+", 3]), "lr", [2, 1], "tau")
    assert early.bound == "at most"


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (trend(-0.8, 0.02), REPRODUCED),
        (trend(0.8, 0.02), NOT_REPRODUCED),
        (trend(-0.2, 0.8), TOO_FEW),
        (trend(None, None), TOO_FEW),
    ],
)
def test_a_trend_counts_if_its_test_finds_one(paper, found, verdict):
    trends = {**TRENDS, "batch_size": {"examples": found}}
    answers = judge_noise(paper, sweeps(), trends)
    assert answers["batch_size_trend"][1] == verdict
    note = answers["learning_rate_monotone"][0].note
    assert note == "3 of 4 steps up, 0 down; concordance over all runs +1.00, p = 0.017"
