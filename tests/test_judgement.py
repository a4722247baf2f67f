import json
from dataclasses import asdict

import pandas as pd
import pytest

from mbc.claims import NOT_REPRODUCED, NOT_RUN, OTHER_SIZE, REPRODUCED, TOO_FEW, VERDICTS
from mbc.judgement import judge_all
from mbc.runs import RANDOM_WEIGHTS
from stages.files import read_yaml
from tests.conftest import ROOT
from tests.test_mechanism_claims import tables


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
        "log_k": 2.3,
        "tau": 1000.0,
        "tau_status": "observed",
        "plateau_reached": 200.0,
        "plateau_reached_status": "observed",
        "plateau_ratio": 1.01,
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
    }
    return pd.DataFrame([{**row, **changes} for _ in range(4)])


def scaling(exponent=1.2, interval=(1.1, 1.3), equivalent=True):
    law = {"n_runs": 10, "statement": "", "r_squared": 0.97}
    if exponent is not None:
        law |= {"exponent": exponent, "bootstrap_interval": list(interval)}
    test = {"margin": 0.1, "level": 0.05, "equivalent": equivalent, "interval": [-0.05, 0.05]}
    fixed = {"n_runs": 4, "exponent": 0.0, "equivalence": test}
    thresholds = {"0.3": law, "0.7": {**law, "exponent": 1.25}} if exponent else {}
    return {
        "dataset_size": law,
        "thresholds": thresholds,
        "fixed_size": {"2000": fixed, "1000": fixed},
    }


def effects(order="rising", ratio=3.5):
    effect = {
        "n_observed": 5,
        "n_censored": 0,
        "n_left_out": 0,
        "concordance": 0.9,
        "monotone": order,
        "ratio": ratio,
        "ratio_is_lower_bound": False,
        "ratio_is_upper_bound": False,
        "largest_over_smallest_response": 1.8,
        "largest_over_smallest_is_lower_bound": False,
        "statement": "",
    }
    both = {"steps": effect, "examples": effect}
    slow = [{"k": 5, "value": 0.8, "n_seeds": 1}, {"k": 36, "value": 1.3, "n_seeds": 1}]
    return {
        **dict.fromkeys(("batch_size", "learning_rate", "label_noise"), both),
        "direction_by_tau": [{"k": 5, "value": 3.0, "n_seeds": 1}],
        "direction_by_character_tau": [{"k": 5, "n_seeds": 0}],
        "transfer_by_tau": slow,
        "linear": [{"final_ratio": 1.0}, {"final_ratio": 0.4}, {}],
    }


def verdicts(claims):
    return {claim.name: claim.verdict for claim in claims}


def test_every_claim_of_the_paper_has_a_verdict_and_a_rule(paper):
    claims = judge_all(paper, table(), scaling(), effects(), tables())
    assert [claim.name for claim in claims] == list(paper)
    assert len(claims) >= 20
    assert all(claim.verdict in VERDICTS and claim.rule and claim.section for claim in claims)
    json.dumps([asdict(claim) for claim in claims], allow_nan=False)


def test_verdicts_follow_the_numbers(paper):
    good = verdicts(judge_all(paper, table(), scaling(), effects(), tables()))
    assert good["plateau_height"] == REPRODUCED
    assert good["marginal_first"] == REPRODUCED
    assert good["marginal_first_strict"] == NOT_REPRODUCED
    assert good["exponent"] == good["exponent_above_1"] == REPRODUCED
    assert good["k_independence_10000"] == REPRODUCED
    assert good["threshold_robustness"] == REPRODUCED
    assert good["learning_rate_monotone"] == REPRODUCED
    assert good["learning_rate_ratio"] == TOO_FEW
    assert good["onset_before_loss"] == good["lead_fraction"] == REPRODUCED
    assert good["forward_slower"] == good["transfer"] == REPRODUCED
    assert good["forward_slower_by_character"] == TOO_FEW
    assert good["linear"] == NOT_REPRODUCED
    assert good["saddle"] == good["coherence"] == REPRODUCED
    assert good["learning_rate_limit"] == NOT_RUN
    two = verdicts(judge_all(paper, table()[:2], scaling(), effects(), tables()))
    assert two["seed_variation"] == TOO_FEW

    late = table(plateau_reached=900.0, plateau_ratio=1.2, onset=900.0, lead_fraction=-0.1)
    bad = verdicts(
        judge_all(paper, late, scaling(0.8, (0.7, 0.9), False), effects("falling", 0.5), tables())
    )
    for name in (
        *("plateau_forms_early", "marginal_first", "two_regimes"),
        *("exponent_above_1", "learning_rate_monotone"),
        *("onset_before_loss", "lead_fraction"),
    ):
        assert bad[name] == NOT_REPRODUCED, name
    assert bad["k_independence_10000"] == TOO_FEW


@pytest.mark.parametrize(
    ("fast", "verdict"), [(3000.0, REPRODUCED), (1800.0, OTHER_SIZE), (700.0, NOT_REPRODUCED)]
)
def test_the_learning_rates_that_the_paper_compares_are_compared(paper, fast, verdict):
    runs = table().assign(lr=[3e-4, 2e-3, 5e-3, 5e-3], tau=[1000.0, fast, 9e9, 9e9])
    runs["tau_status"] = ["observed", "observed", "censored", "diverged"]
    found = verdicts(judge_all(paper, runs, scaling(), effects(), tables()))
    assert found["learning_rate_ratio"] == verdict
    assert found["learning_rate_limit"] == REPRODUCED


def test_the_strict_marginal_is_reproduced_where_it_was_learned(paper):
    learned = table(marginal_status="observed")
    found = verdicts(judge_all(paper, learned, scaling(), effects(), tables()))
    assert found["marginal_first_strict"] == REPRODUCED


def test_nothing_observed_is_no_crash(paper):
    empty = table(tau_status="diverged")
    found = verdicts(judge_all(paper, empty, scaling(None), effects(None, None), tables()))
    assert found["exponent"] == found["learning_rate_monotone"] == TOO_FEW
    assert found["plateau_forms_early"] == NOT_RUN


def test_three_seeds_give_a_variation(paper):
    runs = table().assign(tau=[100.0, 150.0, 200.0, 250.0])
    found = {c.name: c for c in judge_all(paper, runs, scaling(), effects(), tables())}[
        "seed_variation"
    ]
    assert found.ours.value == pytest.approx(64.55 / 175, abs=1e-3)
    assert found.verdict == REPRODUCED
