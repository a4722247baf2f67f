import pandas as pd
import pytest

from mbc.claims import CUT_SHORT, NOT_REPRODUCED, NOT_RUN, OPEN, OTHER_SIZE, REPRODUCED
from stages.files import read_yaml
from tests.conftest import ROOT
from tests.test_judgement import judged, table


@pytest.fixture(scope="module")
def paper():
    return read_yaml(ROOT / "paper.yaml")


def test_the_strict_marginal_is_reproduced_where_it_was_learned(paper):
    learned = table(marginal_status="observed")
    control = table(fibre="structured")[:1].assign(run="structured-1")
    claim = judged(paper, pd.concat([learned, control]))["marginal_first_strict"]
    assert claim.verdict == REPRODUCED
    assert "with structured fibres, where it is easy to learn, 0 of 1" in claim.ours.note
    # not even where it is easy: the criterion may be wrong
    never = pd.concat([table(), control], ignore_index=True)
    assert judged(paper, never)["marginal_first_strict"].verdict == OPEN
    never.loc[never["fibre"] == "structured", "marginal_status"] = "observed"
    assert judged(paper, never)["marginal_first_strict"].verdict == NOT_REPRODUCED
    unknown = table(marginal_status="observed", onset_status="censored")  # before what?
    assert judged(paper, unknown)["marginal_first_strict"].verdict == NOT_REPRODUCED


def test_a_transition_longer_than_the_plateau_is_not_sharp(paper):
    assert judged(paper, table())["sharp_transition"].verdict == REPRODUCED
    assert judged(paper, table(end=1700.0))["sharp_transition"].verdict == NOT_REPRODUCED
    unfinished = table()
    unfinished.loc[:1, "end_status"] = "censored"
    unfinished.loc[0, "last_step"] = 1700.0  # too long already
    claim = judged(paper, unfinished)["sharp_transition"]
    assert (claim.ours.value, claim.ours.n_runs) == (pytest.approx(2 / 3), 3)
    assert claim.ours.note == "2 of 3 runs; not k10-1; 1 ended before it was known"
    assert claim.verdict == CUT_SHORT  # 3 of 4 would be most, 2 of 4 not
    unfinished.loc[:2, "last_step"] = 1700.0
    unfinished.loc[:2, "end_status"] = "censored"
    unfinished.loc[3, ["end_status", "last_step"]] = ["censored", 1500.0]
    assert judged(paper, unfinished)["sharp_transition"].verdict == NOT_REPRODUCED


def test_a_diverged_run_had_no_two_regimes(paper):
    runs = table()
    runs.loc[3, "tau_status"] = "diverged"
    claim = judged(paper, runs)["two_regimes"]
    assert (claim.ours.value, claim.ours.n_runs) == (0.75, 4)


def test_runs_with_label_noise_are_told_apart(paper):
    noisy = table(label_noise=0.1, plateau_ratio=1.3, plateau_z_gap=0.2)[:2]
    runs = pd.concat([table(), noisy.assign(run=["n-1", "n-2"])], ignore_index=True)
    found = judged(paper, runs)
    assert found["two_regimes"].verdict == found["z_gap_on_plateau"].verdict == REPRODUCED
    assert found["marginal_first"].verdict == OPEN  # chance shows it, too
    for name in ("two_regimes", "marginal_first", "z_gap_on_plateau"):
        assert found[name].ours.note == "4 of 4 runs; with label noise 0 of 2"
    only = judged(paper, noisy)["marginal_first"]
    assert (only.verdict, only.ours.note) == (NOT_RUN, "with label noise 0 of 2")


def test_the_height_is_that_of_the_dataset_size_sweep(paper):
    runs = table()
    claim = judged(paper, runs)["plateau_height"]
    assert (claim.ours.value, claim.ours.n_runs) == (pytest.approx(1.01), 4)
    assert judged(paper, table(plateau_ratio=1.06))["plateau_height"].verdict == OTHER_SIZE


def test_a_plateau_that_was_not_looked_at_in_time_tells_nothing(paper):
    runs = table()
    runs.loc[0, ["plateau_reached", "plateau_reached_after", "tau"]] = [605.0, 0.0, 9000.0]
    claim = judged(paper, runs)["plateau_forms_early"]
    assert (claim.ours.value, claim.ours.n_runs, claim.verdict) == (1.0, 3, REPRODUCED)
    assert claim.ours.note == "3 of 3 runs; 1 not evaluated in time to tell"
    runs.loc[0, "plateau_reached_after"] = 550.0  # late for certain
    assert judged(paper, runs)["plateau_forms_early"].ours.value == 0.75
