"""What the stages that look into runs make of one that diverged."""

import importlib
from pathlib import Path

import pytest

from stages.files import read_json, write_json
from stages.followed_run import write_analysis
from tests.followed import write_followed_run

ANALYSES = ("groups", "heads", "curvature", "displacement", "gradient_noise")


def analysed(arguments, analysis):
    write_analysis(importlib.import_module(f"stages.{analysis}").analyse, *arguments)
    return read_json(Path(arguments[-1]))


@pytest.fixture
def write_run(make_condition, params, tmp_path):
    def write(**changes):
        condition = make_condition(checkpoint_every=10, **changes)
        return write_followed_run(tmp_path, condition, params)

    return write


@pytest.mark.parametrize("analysis", ANALYSES)
def test_a_run_that_diverged_at_once_is_said_to_have(write_run, analysis, tmp_path):
    arguments = write_run(lr=1e6)
    assert len((tmp_path / "history.csv").read_text().splitlines()) == 2
    written = analysed(arguments, analysis)
    tau = {"step": 0, "observed": False, "after": 0, "examples": 0}
    step = read_json(tmp_path / "outcome.json")["diverged_at"]
    statement = f"The run diverged at step {step}: nothing was measured."
    assert written == {"k": 4, "tau": tau, "statement": statement}


def test_a_run_that_diverged_late_is_not_measured_either(write_run, tmp_path):
    arguments = write_run(max_steps=20)
    assert "displacements" in analysed(arguments, "displacement")
    write_json(tmp_path / "outcome.json", {"status": "diverged", "diverged_at": 17})
    written = analysed(arguments, "displacement")
    assert set(written) == {"k", "tau", "statement"}
    assert written["tau"]["step"] == 20
