"""The table of runs: one row a run, with its condition and its moments, and queries over it."""

import math
from dataclasses import fields

import pandas as pd

from mbc.conditions import BASE_KEYS, Condition, run_name
from mbc.settings import Sweep
from mbc.transitions import Moment, Plateau, Transition

MOMENTS = ("tau", "onset", "loss_onset", "plateau_reached", "end")

WHOLE_NUMBERS = dict.fromkeys((*MOMENTS, "tau_after", "width", "last_step"), "Int64")


def run_row(
    name: str, seed: int, condition: Condition, outcome: dict, transition: Transition
) -> dict:
    """Return a run as a row of the table.

    Each moment has a column with its step (the last step seen, if it is censored) and one with its
    status: ``observed``, ``censored``, or ``undefined`` (k = 1), then without a step. Moments of a
    run that diverged are ``diverged``: they were not reached before the loss stopped being finite.
    """
    row = {
        "run": run_name(name, seed),
        "condition": name,
        "seed": seed,
        **condition.model_dump(),
        "dataset_size": condition.dataset_size,
        "log_k": math.log(condition.k),
        "run_status": outcome["status"],
        "last_step": outcome["last_step"],
    }
    diverged = outcome["status"] == "diverged"
    for name_of_moment in MOMENTS:
        moment: Moment | None = getattr(transition, name_of_moment)
        status = "undefined" if moment is None else "observed" if moment.observed else "censored"
        if diverged and status == "censored":
            status = "diverged"
        row[name_of_moment] = None if moment is None else moment.step
        row[f"{name_of_moment}_status"] = status
    row["tau_after"] = None if transition.tau is None else transition.tau.after
    row["width"] = transition.width
    row["lead_fraction"] = transition.lead_fraction
    for quantity in fields(Plateau):
        row[f"plateau_{quantity.name}"] = getattr(transition.plateau, quantity.name, None)
    return row


def run_table(rows: list[dict]) -> pd.DataFrame:
    """Return rows of `run_row` as a table, sorted by condition and seed, whole numbers whole."""
    table = pd.DataFrame(rows).sort_values(["condition", "seed"], ignore_index=True)
    return table.astype(WHOLE_NUMBERS)


def read_run_table(path) -> pd.DataFrame:
    """Return a table written with ``to_csv``, with the types of `run_table`."""
    return pd.read_csv(path, dtype={"run": str, "condition": str}).astype(WHOLE_NUMBERS)


def sweep_runs(table: pd.DataFrame, sweep: Sweep, scale: float) -> pd.DataFrame:
    """Return the runs that differ from the base run in nothing but what the sweep varies.

    With ``dataset_sizes`` only runs whose n_b is one of these sizes, times the scale, divided by k
    and rounded; the column ``nominal_size`` tells which, so a run can appear once for each size.
    """
    base = table[table["condition"] == "base"].iloc[0]
    fixed = [key for key in BASE_KEYS if key not in sweep.vary]
    same = table[(table[fixed] == base[fixed]).all(axis=1)]
    if not sweep.dataset_sizes:
        return same.reset_index(drop=True)
    parts = []
    for size in sweep.dataset_sizes:
        nominal = size * scale
        wanted = (nominal / same["k"]).round().clip(lower=1)
        parts.append(same[same["n_b"] == wanted].assign(nominal_size=nominal))
    return pd.concat(parts, ignore_index=True)
