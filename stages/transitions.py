"""Measure every run's moments: the table of runs, and the same by run as JSON."""

import sys
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from mbc.conditions import Condition, parse
from mbc.diagnostics import Diagnostics, diagnose
from mbc.runs import DIAGNOSTIC_MOMENTS, MOMENTS, planned_runs, run_row, run_table
from mbc.settings import TransitionSettings
from mbc.transitions import Moment, Transition, measure
from stages.files import read_json, read_yaml, refusing, write_json, write_text


def main(
    params_file: str, conditions_folder: str, runs_folder: str, table_file: str, metrics_file: str
) -> None:
    """Walk conditions and seeds as the parameters name them; a run that is missing is an error."""
    params = read_yaml(Path(params_file))
    settings = parse(TransitionSettings, params["transition"], "transition")
    rows, by_run = [], {}
    for run in planned_runs(params["conditions"], params["transfers"], params["seeds"]):
        condition_file = Path(conditions_folder, f"{run.condition}.yaml")
        condition = parse(Condition, read_yaml(condition_file), str(condition_file))
        folder = Path(runs_folder, run.name)
        if not (folder / "outcome.json").exists():
            raise ValueError(f"The run {run.name} is missing: 'dvc repro {run.stage}' trains it.")
        outcome = read_json(folder / "outcome.json")
        if outcome["status"] == "diverged" and not (folder / "history.csv").read_text().strip():
            transition, diagnostics = never_finite(condition.k)
        else:
            history = pd.read_csv(folder / "history.csv")
            transition = measure(history, condition.k, settings)
            diagnostics = diagnose(history, condition.k, transition.tau, settings)
        rows.append(run_row(run, condition, outcome, transition, diagnostics))
        by_run[run.name] = {**outcome, **asdict(transition), **asdict(diagnostics)}
        by_run[run.name].pop("versions")
    table = run_table(rows)
    write_text(Path(table_file), table.to_csv(index=False))
    write_json(Path(metrics_file), by_run)


def never_finite(k: int) -> tuple[Transition, Diagnostics]:
    """Return moments and diagnostics of a run whose loss was never finite: none came by step 0.

    A transfer is one if its forward run diverged. Its history has no row and no column.

    Args:
        k: targets in each fibre.
    """
    missed = Moment(step=0, observed=False, after=0, examples=0)
    if k == 1:
        return Transition(character_tau=missed), Diagnostics()
    return (
        Transition(**dict.fromkeys(MOMENTS, missed)),
        Diagnostics(**dict.fromkeys(DIAGNOSTIC_MOMENTS, missed)),
    )


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
