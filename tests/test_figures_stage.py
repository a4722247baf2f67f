"""The stage that draws: which figures it leaves out, and what it passes to the others."""

import pandas as pd
import pytest

from mbc.conditions import BASE_KEYS, Condition
from mbc.diagnostics import Diagnostics
from mbc.runs import MOMENTS, RANDOM_WEIGHTS, PlannedRun, run_row, run_table
from mbc.transitions import Moment, Transition
from stages import figures
from stages.files import write_json, write_yaml

CONDITIONS = {
    "base": {},
    "k05": {"k": 5},
    "lr_5e_3": {"lr": 5e-3},
    "forward_k05": {"k": 5, "direction": "forward"},
    "linear_k05": {"k": 5, "network": "linear"},
    "structured_k05": {"k": 5, "fibre": "structured"},
}
HISTORY = pd.DataFrame(
    {"step": [0, 10, 20], **dict.fromkeys(figures.HISTORY_COLUMNS[1:], 0.5)},
).assign(z_gap_string=0.5, b_gap_string=0.5)
SURVIVAL = pd.DataFrame(
    {
        **{"step": 0.0, "survival": 1.0, "low": 0.0, "high": 1.0, "events": 0, "censored": 0},
        **{"sweep": "learning_rate", "value": [0.001, 0.005], "n_runs": 1},
    }
)
"""Of runs that all diverged."""
NO_FIT = {"n_runs": 0, "n_left_out": 2, "statement": "Not estimable."}
FIT = {"n_runs": 5, "n_left_out": 2, "exponent": 1.1, "bootstrap_interval": [1.0, 1.2]}
ONSET, TAU = Moment(10, True, 0, 1280), Moment(20, True, 10, 2560)


@pytest.fixture
def draw(params, tmp_path, monkeypatch):
    """Return a function that runs the stage on a few runs and returns its figures by name.

    Of mechanism tables there are none with a row; all histories are the same.
    """
    saved = {}
    save = figures.figures.save

    def save_and_keep(figure, path):
        save(figure, path)
        saved[path.stem] = figure

    monkeypatch.setattr(figures.figures, "save", save_and_keep)

    def run(
        onset=ONSET,
        tau=TAU,
        *,
        base=None,
        history=HISTORY,
        outcome="transition_passed",
        fit=NO_FIT,
        scale=0.1,
    ):
        values = {**{key: params[key] for key in BASE_KEYS}, **(base or {})}
        ended = {"status": outcome, "last_step": 20}
        rows = []
        for name, changes in CONDITIONS.items():
            condition = Condition(**{**values, **changes})
            planned = PlannedRun(name, 0, RANDOM_WEIGHTS, "train")
            found = {**dict.fromkeys(MOMENTS, onset), "tau": tau}
            transition = Transition(**found) if condition.k > 1 else Transition()
            rows.append(run_row(planned, condition, ended, transition, Diagnostics()))
            folder = tmp_path / "runs" / planned.name
            folder.mkdir(parents=True)
            history.to_csv(folder / "history.csv", index=False)
        run_table(rows).to_csv(tmp_path / "runs.csv", index=False)
        write_yaml(tmp_path / "params.yaml", {**params, **values, "scale": scale})
        results = {"confidence": 0.9, "dataset_size": fit, "thresholds": {"0.5": fit}}
        write_json(tmp_path / "scaling.json", results)
        curve = pd.DataFrame(
            {"dataset_size": [5000, 20_000], "tau": [20, 80], "low": [10, 40], "high": [40, 160]}
        )
        curve = curve if "exponent" in fit else curve[:0]
        curve.to_csv(tmp_path / "curve.csv", index=False)
        SURVIVAL.to_csv(tmp_path / "survival.csv", index=False)
        (tmp_path / "mechanism").mkdir()
        for name in ("groups", "displacement", "attention", "curvature", "noise_shares"):
            pd.DataFrame(columns=["run"]).to_csv(tmp_path / "mechanism" / f"{name}.csv")
        heads = pd.DataFrame(columns=["ablation", "candidate_loss_rise"])
        heads.to_csv(tmp_path / "mechanism" / "heads.csv")
        write_yaml(tmp_path / "times.yaml", {"dataset_size": {"base": 25}})
        names = ["params.yaml", "runs.csv", "runs", "scaling.json", "curve.csv", "survival.csv"]
        names += ["mechanism", "times.yaml", "plots"]
        figures.main(*(str(tmp_path / name) for name in names))
        assert {path.stem for path in (tmp_path / "plots").glob("*.png")} == {*saved}
        return saved

    return run


def test_runs_that_all_diverged_leave_figures_empty_or_out(draw):
    drawn = draw(*[Moment(10, False, 10, 1280)] * 2, outcome="diverged")
    assert {*drawn} == {
        *("waiting_time", "loss_curves", "cascade", "learning_rate", "direction"),
        *("linear", "structured", "anatomy"),
    }


def test_runs_that_diverged_in_their_first_step_do_so_too(draw):
    drawn = draw(*[Moment(0, False, 0, 0)] * 2, outcome="diverged", history=HISTORY[:1])
    assert {"loss_curves", "structured", "linear", "anatomy"} <= {*drawn}


def test_a_base_without_tau_has_no_anatomy_and_its_sweeps_are_drawn(draw):
    drawn = draw(base={"k": 1})
    assert "anatomy" not in drawn
    assert {"waiting_time", "loss_curves", "cascade", "direction", "structured"} <= {*drawn}


def test_the_exponent_says_its_confidence_and_what_it_leaves_out(draw):
    drawn = draw(fit=FIT)
    named = [text.get_text() for text in drawn["waiting_time"].axes[0].get_legend().get_texts()]
    assert named == [
        "90% band",
        "τ ∝ D^1.10  [1.00, 1.20]\n2 of 7 runs without a transition left out",
        "run",
    ]
    assert "90% bootstrap interval" in drawn["threshold_exponent"].axes[0].get_ylabel()


def test_the_papers_waiting_times_are_drawn_at_its_own_scale_alone(draw):
    drawn = draw(scale=1.0)
    named = [text.get_text() for text in drawn["waiting_time"].axes[0].get_legend().get_texts()]
    assert named == ["run", "the paper's run"]


def test_an_exponent_of_all_runs_leaves_out_none():
    assert figures._exponent_text({**FIT, "n_left_out": 0}) == "τ ∝ D^1.10  [1.00, 1.20]"
