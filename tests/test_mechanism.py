from dataclasses import asdict, fields

import pandas as pd

from mbc import mechanism
from mbc.curvature import SampleCurvature, conclude
from mbc.gradient_noise import NoiseShare, NoiseSize
from mbc.group_curves import GroupCurvePoint, GroupTransition
from stages.mechanism import TABLES


def without_none(values):
    """Return what is left of a dictionary once it was written as JSON."""
    return {name: value for name, value in values.items() if value is not None}


def test_groups_keep_columns_that_json_left_out():
    point = GroupCurvePoint(100, 0.5, 0.1, 0.0, 0.0, 0.0, 0.0, None)
    transition = GroupTransition(10, 0, statement="None is solved.")
    found = {
        "k10-1": {
            "k": 10,
            "curve": [without_none(asdict(point))],
            "transition": without_none(asdict(transition)),
        }
    }
    curves = mechanism.group_curves(found)
    assert list(curves) == ["run", "k", *(f.name for f in fields(GroupCurvePoint))]
    assert pd.isna(curves["heterogeneity"].iloc[0])
    transitions = mechanism.group_transitions(found)
    assert transitions["statement"].tolist() == ["None is solved."]
    assert pd.isna(transitions["width"].iloc[0])


def test_displacements_have_a_row_for_each_component_of_each_turn():
    turns = [
        {"cosines": {}, "fraction": 0.0, "phase": "plateau"},
        {
            **{"cosines": {"whole": 0.5, "mlp": 0.4}, "fraction": 0.2, "phase": "plateau"},
            **{"fresh": 0.3, "permuted": -0.4},
        },
    ]
    table = mechanism.displacements({"base-1": {"k": 20, "displacements": turns}})
    assert table["component"].tolist() == ["whole", "mlp"]
    assert table["fresh"].tolist() == [0.3, 0.3]


def ablations(verdict):
    effect = {"layer": 0, "head": 1, "candidate_loss_rise": 1.5}
    leading = {
        "verdict": verdict,
        "tied": [[0, 1], [0, 2]] if verdict == "tie" else [],
        "rise": 1.5,
    }
    if verdict == "leader":
        leading |= {"layer": 0, "head": 1, "in_first_layer": True}
    return {"without": [effect, {**effect, "head": 2}], "leading": leading}


def test_heads_say_which_of_them_leads():
    head = {"layer": 0, "head": 1, "mean": 0.4}
    moment = {"step": 100, "fraction": 1.0, "uniform_mean": 0.15, "heads": [head]}
    phase = {"step": 100, "zero": ablations("leader"), "mean": ablations("tie")}
    found = {"base-1": {"k": 20, "phases": {"transition": phase}, "attention": [moment]}}
    heads = mechanism.head_effects(found)
    assert heads.loc[heads["ablation"] == "zero", "leading"].tolist() == [True, False]
    assert not heads.loc[heads["ablation"] == "mean", "leading"].any()
    leading = mechanism.leading_heads(found).set_index("ablation")
    assert leading.loc["zero", "in_first_layer"]
    assert leading.loc["mean", "tied"] == "L0H1 L0H2"
    attention = mechanism.attention(found)
    assert attention[["attention", "uniform"]].iloc[0].tolist() == [0.4, 0.15]


def test_curvature_has_a_row_for_each_sample():
    sample = SampleCurvature(100, 50, 2.0, 0.01, True, -0.1, 0.2, False, 0.0)
    phase = {"step": 100, **without_none(asdict(conclude(sample, sample, -0.05)))}
    table = mechanism.curvature({"base-1": {"k": 20, "phases": {"plateau": phase}}})
    assert table["sample"].tolist() == ["first", "second"]
    assert not table["negative"].any()
    assert table["anisotropy"].isna().all()
    assert table["transferred"].tolist() == [-0.05, -0.05]


def test_noise_has_rows_by_direction_and_by_batch_size():
    share = asdict(NoiseShare(32, "largest 1", 5.0, 0.1, 0.01, 8000.0, 6000.0, 12000.0))
    size = without_none(asdict(NoiseSize(32, 64, 10.0, 11.0, -1.0, None, 1e-5, 3e-5)))
    found = {"base-1": {"k": 20, "lr": 1e-3, "shares": [share], "sizes": [size]}}
    assert mechanism.noise_shares(found)["share_over_isotropic"].tolist() == [8000.0]
    sizes = mechanism.noise_sizes(found)
    assert sizes["trace"].tolist() == [10.0]
    assert sizes["noise_scale"].isna().all()


def test_a_run_that_diverged_has_no_row():
    tau = {"step": 0, "observed": False, "after": 0, "examples": 0}
    diverged = {"k": 10, "tau": tau, "statement": "The run diverged at step 2."}
    turn = {"cosines": {"whole": 0.5}, "fraction": 0.2, "phase": "plateau"}
    found = {"k10-1": diverged, "base-1": {"k": 20, "displacements": [turn]}}
    assert mechanism.displacements(found)["run"].tolist() == ["base-1"]
    for makers in TABLES.values():
        for make in makers.values():
            table = make({"k10-1": diverged})
            assert table.empty
            assert {"run", "k"} < set(table)
