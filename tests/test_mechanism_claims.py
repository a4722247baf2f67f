import pandas as pd
import pytest

from mbc.claims import NOT_REPRODUCED, NOT_RUN, OTHER_SIZE, REPRODUCED, TOO_FEW
from mbc.mechanism_claims import judge_mechanism
from stages.files import read_yaml
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def paper():
    return read_yaml(ROOT / "paper.yaml")


def tables(**changes):
    runs = ("k10-1", "base-1")
    curve = [(0.51, 0.0), (1.0, 0.4), (1.45, 0.99), (2.0, 1.0)]
    turns = [("plateau", 0.3, 0.05), ("plateau", 0.6, 0.1), ("transition", 1.0, 0.75)]
    found = {
        "groups": pd.DataFrame(
            [
                {"run": run, "k": 10, "fraction": fraction, "share_solved": share}
                for run in runs
                for fraction, share in curve
            ]
        ),
        "group_transitions": pd.DataFrame(
            {"run": runs, "width_over_tau": [0.4, 0.5], "collective": [True, True]}
        ),
        "leading_heads": pd.DataFrame(
            [
                {
                    **{"run": run, "phase": phase, "ablation": kind, "verdict": "leader"},
                    **{"layer": 0, "head": 3, "in_first_layer": kind == "zero"},
                }
                for run in runs
                for phase in ("plateau", "transition", "end")
                for kind in ("zero", "mean")
            ]
        ),
        "curvature": pd.DataFrame(
            [
                {
                    **{"run": run, "phase": phase, "sample": sample, "smallest": -0.005},
                    **{"negative": True, "anisotropy": 600.0, "anisotropy_at_least": 500.0},
                    "transferred": -0.004,
                }
                for run in runs
                for phase in ("plateau", "end")
                for sample in ("first", "second")
            ]
        ),
        "noise_shares": pd.DataFrame(
            [
                {
                    **{"run": run, "batch_size": size, "direction": direction},
                    **{"share_over_isotropic": factor, "low": factor / 1.4, "high": factor * 1.5},
                }
                for run in runs
                for size in (32, 512)
                for direction, factor in (("smallest", 2.0), ("largest 1", 4000.0))
            ]
        ),
        "displacement": pd.DataFrame(
            [
                {
                    **{"run": run, "phase": phase, "fraction": fraction, "cosine": cosine},
                    **{"component": component, "fresh": 0.025},
                }
                for run in runs
                for phase, fraction, cosine in turns
                for component in ("whole", "mlp")
            ]
        ),
    }
    return {**found, **changes}


def verdicts(paper, **changes):
    answers = judge_mechanism(paper, tables(**changes))
    return {name: verdict for name, (_, verdict, _) in answers.items()}


def test_numbers_like_the_papers_reproduce_every_claim(paper):
    answers = judge_mechanism(paper, tables())
    assert {name: verdict for name, (_, verdict, _) in answers.items()} == dict.fromkeys(
        answers, REPRODUCED
    )
    assert answers["leading_head"][0].note == "k10-1: L0H3; base-1: L0H3"
    assert answers["coherence"][0].note.startswith("plateau: 0.0")
    assert all(rule for _, _, rule in answers.values())


def test_groups_solved_early_or_late(paper):
    early = tables()["groups"].assign(share_solved=lambda t: t["share_solved"] + 0.1)
    assert verdicts(paper, groups=early)["groups_at_half_tau"] == NOT_REPRODUCED
    late = tables()["groups"].assign(share_solved=lambda t: t["share_solved"] * 0.7)
    assert verdicts(paper, groups=late)["groups_after_tau"] == OTHER_SIZE
    never = tables()["groups"].assign(share_solved=0.0)
    assert verdicts(paper, groups=never)["groups_after_tau"] == NOT_REPRODUCED


@pytest.mark.parametrize(
    ("width", "verdict"), [(0.9, OTHER_SIZE), (1.2, NOT_REPRODUCED), (0.1, OTHER_SIZE)]
)
def test_widths(paper, width, verdict):
    transitions = tables()["group_transitions"].assign(width_over_tau=width)
    assert verdicts(paper, group_transitions=transitions)["transition_width"] == verdict


def test_groups_that_wait_on_their_own_are_not_collective(paper):
    transitions = tables()["group_transitions"].assign(collective=False)
    assert verdicts(paper, group_transitions=transitions)["collective"] == NOT_REPRODUCED
    transitions = transitions.assign(collective=None, width_over_tau=float("nan"))
    found = verdicts(paper, group_transitions=transitions)
    assert found["collective"] == found["transition_width"] == NOT_RUN


def test_a_tie_is_no_leader(paper):
    heads = tables()["leading_heads"].assign(verdict="tie", in_first_layer=None)
    answers = judge_mechanism(paper, tables(leading_heads=heads))
    assert answers["leading_head"][1] == NOT_REPRODUCED
    assert answers["leading_head"][0].note == "k10-1: tie; base-1: tie"


def test_incoherent_transitions(paper):
    turns = tables()["displacement"]
    assert verdicts(paper, displacement=turns.assign(cosine=0.5))["coherence"] == NOT_REPRODUCED
    plateau = turns[turns["phase"] == "plateau"]
    assert verdicts(paper, displacement=plateau)["coherence"] == NOT_RUN
    weak = turns.assign(cosine=turns["cosine"] / 2)
    assert verdicts(paper, displacement=weak)["coherence"] == OTHER_SIZE


def test_a_smallest_eigenvalue_near_0_is_no_saddle(paper):
    flat = tables()["curvature"].assign(negative=False, anisotropy=None)
    answers = judge_mechanism(paper, tables(curvature=flat))
    assert answers["saddle"][1] == NOT_REPRODUCED
    assert answers["saddle"][0].note.startswith("base-1: -0.005, on other examples -0.004; k10")
    assert answers["anisotropy"][1] == REPRODUCED  # at least 500, whatever the sign
    unknown = verdicts(paper, curvature=flat.assign(anisotropy_at_least=100.0))
    assert unknown["anisotropy"] == TOO_FEW


def test_a_direction_of_one_sample_alone_is_no_saddle(paper):
    own = tables()["curvature"].assign(transferred=0.2, negative=False)
    assert verdicts(paper, curvature=own)["saddle"] == NOT_REPRODUCED


@pytest.mark.parametrize(("ratio", "verdict"), [(50.0, OTHER_SIZE), (3.0, NOT_REPRODUCED)])
def test_a_saddle_that_is_less_anisotropic(paper, ratio, verdict):
    steep = tables()["curvature"].assign(anisotropy=ratio)
    assert verdicts(paper, curvature=steep)["anisotropy"] == verdict


def test_noise_along_the_smallest_as_well_is_not_aligned(paper):
    shares = tables()["noise_shares"]
    shares.loc[shares["direction"] == "smallest", ["share_over_isotropic", "high"]] = 4000.0
    assert verdicts(paper, noise_shares=shares)["noise_alignment"] == NOT_REPRODUCED
