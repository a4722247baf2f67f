import json
from dataclasses import asdict

import pandas as pd
import pytest

from mbc.claims import (
    CUT_SHORT,
    NOT_REPRODUCED,
    NOT_RUN,
    OPEN,
    OTHER_SIZE,
    REPRODUCED,
    TOO_FEW,
    VERDICTS,
)
from mbc.judgement import judge_all
from mbc.runs import RANDOM_WEIGHTS
from stages.files import read_yaml
from tests.conftest import ROOT
from tests.test_mechanism_claims import tables
from tests.test_noise_claims import TRENDS, sweeps


@pytest.fixture(scope="module")
def paper():
    return read_yaml(ROOT / "paper.yaml")


def table(**changes):
    row = {
        "condition": "k10",
        "network": "transformer",
        "direction": "backward",
        "fibre": "distinct",
        "start_from": RANDOM_WEIGHTS,
        "lr": 1e-3,
        "label_noise": 0.0,
        "log_k": 2.3,
        "tau": 1000.0,
        "tau_status": "observed",
        "plateau_reached": 200.0,
        "plateau_reached_status": "observed",
        "plateau_reached_after": 150.0,
        "plateau_ratio": 1.01,
        "plateau_peak_ratio": 1.2,
        "dataset_size": 2000,
        "last_step": 1500.0,
        "end": 1400.0,
        "end_status": "observed",
        "marginal_status": "censored",
        "plateau_z_gap": 0.001,
        "onset": 400.0,
        "onset_status": "observed",
        "loss_onset": 800.0,
        "loss_onset_status": "observed",
        "lead_fraction": 0.5,
        "onset_string": 300.0,
        "onset_string_status": "observed",
        "lead_fraction_string": 0.6,
        "onset_b_string": 200.0,
        "onset_b_string_status": "observed",
        "loss_onset_character": 900.0,
        "loss_onset_character_status": "observed",
    }
    runs = ("k10-1", "base-1", "k10-2", "k10-3")  # the first two are looked into
    return pd.DataFrame([{**row, "run": run, **changes} for run in runs])


def scaling(exponent=1.2, interval=(1.1, 1.3), equivalent=True):
    law = {"n_runs": 10, "n_left_out": 0, "statement": "", "r_squared": 0.97}
    law["censored"] = {"n_censored": 0}
    if exponent is not None:
        law |= {"exponent": exponent, "bootstrap_interval": list(interval)}
        law["hc3_interval"] = list(interval)
    test = {"margin": 0.1, "level": 0.05, "equivalent": equivalent, "interval": [-0.05, 0.05]}
    fixed = {"n_runs": 4, "n_left_out": 0, "exponent": 0.0, "equivalence": test}
    thresholds = {"0.3": law, "0.7": {**law, "exponent": 1.25}} if exponent else {}
    return {
        "dataset_size": law,
        "thresholds": thresholds,
        "fixed_size": {"2000": fixed, "1000": fixed},
    }


def ratio(k, value, condition=None):
    seen = {"n_seeds": 1, "n_left_out": 0, "value": value}
    if value is None:
        seen = {"n_seeds": 0, "n_left_out": 1}
    return {"condition": condition or f"k{k:02}", "k": k, **seen}


def effects():
    return {
        **TRENDS,
        "direction_by_tau": [ratio(5, 3.0)],
        "direction_by_character_tau": [ratio(5, None)],
        "transfer_by_tau": [ratio(5, 0.75), ratio(36, 1.3)],
        "transfer_by_character_tau": [ratio(5, 1.8), ratio(36, 1.3)],
        "forward_use": [{"run": "f05-1", "k": 5, "step": 60, "gap": 12.0}],
        "linear": [
            {"run": "l-10", "final_ratio": 1.0, "largest_z_gap": 0.01, "tau_status": "censored"},
            {"run": "l-20", "final_ratio": 1.0, "largest_z_gap": 0.3, "tau_status": "censored"},
            {},
        ],
    }


def judged(paper, runs, fits=None, others=None):
    """Return the claims by name, at a tenth of the paper's size."""
    fits, others = fits or scaling(), others or effects()
    claims = judge_all(paper, runs, all_sweeps(runs), 0.1, fits, others, tables())
    return {claim.name: claim for claim in claims}


def all_sweeps(runs):
    """Return sweeps, that of the dataset size with the backward runs of distinct fibres."""
    by_size = runs[(runs["fibre"] == "distinct") & (runs["tau_status"] != "undefined")]
    return {**sweeps(), "dataset_size": by_size, "schedule": runs[runs["condition"] == "cosine"]}


def verdicts(claims):
    return {name: claim.verdict for name, claim in claims.items()}


def test_every_claim_of_the_paper_has_a_verdict_and_a_rule(paper):
    claims = judged(paper, table())
    assert list(claims) == list(paper)
    assert len(claims) >= 20
    for claim in claims.values():
        assert claim.verdict in VERDICTS
        assert claim.rule
        assert claim.section
    json.dumps([asdict(claim) for claim in claims.values()], allow_nan=False)


def test_verdicts_follow_the_numbers(paper):
    good = verdicts(judged(paper, table()))
    assert good["plateau_height"] == good["two_regimes"] == REPRODUCED
    assert good["marginal_first"] == OPEN  # chance shows it, too
    assert good["marginal_first_strict"] == NOT_REPRODUCED
    assert good["exponent"] == good["exponent_above_1"] == REPRODUCED
    assert good["k_independence_10000"] == good["k_independence_20000"] == REPRODUCED
    assert good["threshold_robustness"] == good["power_law_fit"] == REPRODUCED
    assert good["learning_rate_ratio"] == REPRODUCED
    assert good["onset_before_loss"] == good["lead_fraction"] == REPRODUCED
    assert good["onset_before_loss_character"] == good["lead_fraction_character"] == REPRODUCED
    assert good["b_used_first"] == REPRODUCED
    assert good["forward_slower"] == good["transfer"] == REPRODUCED
    assert good["transfer_by_character"] == NOT_REPRODUCED
    assert good["forward_slower_by_character"] == CUT_SHORT
    assert good["linear"] == REPRODUCED
    assert good["linear_level"] == NOT_REPRODUCED
    assert good["saddle"] == good["coherence"] == REPRODUCED
    assert verdicts(judged(paper, table()[:2]))["seed_variation"] == TOO_FEW

    late = table(plateau_reached=900.0, plateau_reached_after=850.0)
    late = late.assign(plateau_ratio=1.2, onset=900.0)
    bad = verdicts(judged(paper, late, scaling(0.8, (0.7, 0.9), False)))
    for name in (
        *("plateau_forms_early", "plateau_height", "marginal_first", "two_regimes"),
        *("exponent_above_1", "onset_before_loss", "lead_fraction"),
    ):
        assert bad[name] == NOT_REPRODUCED, name
    assert bad["k_independence_10000"] == TOO_FEW


def test_the_waiting_time_itself_is_compared_at_scale_1_only(paper):
    base = table(condition="base", tau=4848.0)[:1]

    def found(scale, runs):
        parts = (all_sweeps(runs), scale, scaling(), effects(), tables())
        return {claim.name: claim for claim in judge_all(paper, runs, *parts)}["waiting_time"]

    assert found(0.1, base).verdict == NOT_RUN
    assert found(1.0, base).verdict == OTHER_SIZE
    assert found(1.0, base.assign(tau=3400.0)).verdict == REPRODUCED
    assert found(1.0, base.assign(tau=9000.0)).verdict == NOT_REPRODUCED
    other = base.assign(condition="cosine", run="cosine-1", tau=3700.0)
    claim = found(1.0, pd.concat([base, other]))
    assert claim.ours.value == pytest.approx(4848)
    assert claim.ours.note == "single run; by the cosine schedule cosine-1 3700.0"
    assert found(1.0, base.assign(tau_status="censored")).verdict == CUT_SHORT
    lost = pd.concat([base, base.assign(run="base-2", tau_status="censored")])
    assert found(1.0, lost).verdict == CUT_SHORT


def test_an_onset_that_is_known_to_come_later_counts_against_the_claim(paper):
    runs = table()
    runs.loc[:1, "onset_status"] = "censored"
    runs.loc[0, "onset"] = 900.0  # later than the loss onset for certain
    runs.loc[1, "onset"] = 700.0  # nobody knows
    claim = judged(paper, runs)["onset_before_loss"]
    assert (claim.ours.value, claim.ours.n_runs) == (pytest.approx(2 / 3), 3)
    lead = judged(paper, runs)["lead_fraction"]
    assert lead.ours.value == pytest.approx((-0.125 + 0.5 + 0.5) / 3)
    assert lead.ours.note == "1 of 3 runs ended before the onset and count with their end"
    assert lead.ours.bound == "at most"


def test_a_loss_onset_that_was_not_reached_bounds_the_lead(paper):
    runs = table(onset=600.0, loss_onset_character=1500.0)
    runs.loc[:1, "loss_onset_character_status"] = "censored"
    claims = judged(paper, runs)
    order, lead = (claims[f"{n}_character"] for n in ("onset_before_loss", "lead_fraction"))
    assert (order.ours.value, order.ours.n_runs) == (1.0, 4)
    assert (lead.ours.value, lead.ours.bound) == (pytest.approx(0.6), "at least")
    assert lead.verdict == CUT_SHORT
    assert lead.ours.note == "2 of 4 runs ended before the loss onset and count with their end"
    runs.loc[3, ["onset_status", "onset"]] = ["censored", 1600.0]  # a bound from the other side
    lead = judged(paper, runs)["lead_fraction_character"]
    assert (lead.ours.bound, lead.verdict) == (None, CUT_SHORT)


def test_b_is_used_first_or_not(paper):
    late = judged(paper, table(onset_b_string=350.0))["b_used_first"]
    assert (late.ours.value, late.verdict, late.added) == (0.0, NOT_REPRODUCED, True)
    never = judged(paper, table(onset_string_status="censored"))["b_used_first"]
    assert never.ours.value == 1.0
    neither = {"onset_b_string_status": "censored", "onset_string_status": "censored"}
    assert judged(paper, table(**neither, onset_b_string=10.0))["b_used_first"].verdict == NOT_RUN


def test_a_spread_near_the_limit_is_open(paper):
    def found(exponent):
        fits = scaling()
        fits["thresholds"]["0.7"] = {**fits["thresholds"]["0.7"], "exponent": exponent}
        return judged(paper, table(), fits)["threshold_robustness"].verdict

    assert [found(value) for value in (1.29, 1.31, 1.33)] == [REPRODUCED, TOO_FEW, NOT_REPRODUCED]


def test_runs_without_a_transition_leave_equivalence_open(paper):
    fits = scaling()
    fits["fixed_size"]["1000"] = {**fits["fixed_size"]["1000"], "n_left_out": 1}
    found = verdicts(judged(paper, table(), fits))
    assert found["k_independence_10000"] == CUT_SHORT
    assert found["k_independence_20000"] == REPRODUCED


def test_the_exponent_with_censored_runs_is_that_of_the_censored_fit(paper):
    fits = scaling()
    censored = {"exponent": 1.4, "interval": [1.33, 1.5], "n_observed": 9, "n_censored": 1}
    fits["dataset_size"] |= {"n_left_out": 1, "censored": censored}
    claims = judged(paper, table(), fits)
    assert claims["exponent"].ours.value == 1.4
    assert claims["exponent"].ours.n_runs == 10
    assert claims["exponent"].verdict == OTHER_SIZE
    assert claims["exponent_above_1"].verdict == REPRODUCED
    assert claims["power_law_fit"].verdict == CUT_SHORT
    for fit in fits["thresholds"].values():
        fit["n_left_out"] = 1
    assert judged(paper, table(), fits)["threshold_robustness"].verdict == CUT_SHORT


def test_a_poor_fit_is_no_law(paper):
    fits = scaling()
    fits["dataset_size"]["r_squared"] = 0.75
    assert judged(paper, table(), fits)["power_law_fit"].verdict == NOT_REPRODUCED


def test_forward_must_be_slower_at_every_k(paper):
    def found(*values):
        ratios = [ratio(k, value) for k, value in zip([5, 10, 20, 36], values, strict=True)]
        claim = judged(paper, table(), others={**effects(), "direction_by_tau": ratios})
        return claim["forward_slower"].verdict

    assert found(4.4, 3.9, 3.0, 1.7) == REPRODUCED
    assert found(0.3, 0.6, 9.0, 25.0) == NOT_REPRODUCED
    assert found(8.0, 8.0, 9.0, 25.0) == OTHER_SIZE
    assert found(4.4, 3.9, 3.0, None) == CUT_SHORT


def test_a_criterion_met_without_the_given_string_compares_nothing(paper):
    slower = [ratio(k, 3.0) for k in (5, 10, 20, 36)]
    others = {**effects(), "direction_by_character_tau": slower}
    assert (
        judged(paper, table(), others=others)["forward_slower_by_character"].verdict == REPRODUCED
    )
    unused = {**others, "forward_use": [{"run": "f05-1", "k": 5, "step": 60, "gap": 0.08}]}
    claim = judged(paper, table(), others=unused)["forward_slower_by_character"]
    assert claim.verdict == OPEN
    assert "before they used A (shuffled: 0.08 nats)" in claim.ours.note


def test_transfer_is_judged_at_the_two_k_that_the_paper_names(paper):
    def found(*ratios):
        others = {**effects(), "transfer_by_tau": list(ratios)}
        return judged(paper, table(), others=others)["transfer"]

    assert found(ratio(10, 0.88), ratio(20, 1.07)).verdict == TOO_FEW
    small, large = ratio(5, 0.75), ratio(36, 1.3)
    assert found(small, large).verdict == REPRODUCED
    another = ratio(5, 2.0, "d10k_k05")
    assert found(small, another, large).verdict == REPRODUCED
    assert found(small, ratio(36, None)).verdict == CUT_SHORT


def test_a_transfer_that_helps_where_it_should_hurt_is_not_the_papers(paper):
    def found(small, large):
        others = {**effects(), "transfer_by_tau": [small, large]}
        return judged(paper, table(), others=others)["transfer"].verdict

    assert found(ratio(5, 1.3), ratio(36, 2.0)) == NOT_REPRODUCED
    assert found(ratio(5, 0.7), ratio(36, 0.7)) == NOT_REPRODUCED
    assert found(ratio(5, 0.9), ratio(36, 1.2)) == TOO_FEW  # single runs, within 25% of 1
    several = {**ratio(5, 0.9), "n_seeds": 3, "low": 0.85, "high": 0.95}
    assert found(several, ratio(36, 1.3)) == REPRODUCED
    assert found({**several, "high": 1.1}, ratio(36, 1.3)) == TOO_FEW


@pytest.mark.parametrize(
    ("change", "leaves", "level"),
    [
        ({}, REPRODUCED, REPRODUCED),
        ({"final_ratio": 1.27}, REPRODUCED, NOT_REPRODUCED),  # upward: worse than knowing nothing
        ({"final_ratio": 0.8}, NOT_REPRODUCED, NOT_REPRODUCED),
        ({"tau_status": "observed"}, NOT_REPRODUCED, REPRODUCED),
        ({"largest_z_gap": 0.06}, REPRODUCED, NOT_REPRODUCED),
    ],
)
def test_linear_networks(paper, change, leaves, level):
    run = {**effects()["linear"][0], **change}
    found = verdicts(judged(paper, table(), others={**effects(), "linear": [run]}))
    assert (found["linear"], found["linear_level"]) == (leaves, level)


def test_nothing_observed_is_no_crash(paper):
    found = verdicts(judged(paper, table(tau_status="diverged"), scaling(None)))
    assert found["exponent"] == found["exponent_above_1"] == TOO_FEW
    assert found["plateau_forms_early"] == NOT_RUN


def test_three_seeds_give_a_variation(paper):
    runs = table().assign(tau=[100.0, 150.0, 200.0, 250.0])
    found = judged(paper, runs)["seed_variation"]
    assert found.ours.value == pytest.approx(64.55 / 175, abs=1e-3)
    assert found.verdict == REPRODUCED
    runs.loc[3, "tau_status"] = "censored"
    assert judged(paper, runs)["seed_variation"].verdict == CUT_SHORT
    assert judged(paper, runs[:2])["seed_variation"].verdict == TOO_FEW
