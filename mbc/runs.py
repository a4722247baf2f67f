"""The table of runs: one row a run, with its condition and its moments, and queries over it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

import pandas as pd

from mbc.conditions import BASE_KEYS, RECORDING_KEYS, Condition, run_name
from mbc.diagnostics import Diagnostics
from mbc.settings import TRANSFER_PREFIX, Sweep, Sweeps
from mbc.transitions import Moment, Plateau, Transition

MOMENTS = (
    *("tau", "character_tau", "onset", "onset_string", "loss_onset"),
    *("marginal", "plateau_reached", "end"),
)
"""The moments of a `mbc.transitions.Transition`."""

DIAGNOSTIC_MOMENTS = ("onset_b_string", "loss_onset_character")
"""Those of `mbc.diagnostics.Diagnostics`."""

RANDOM_WEIGHTS = "random weights"

WHOLE_NUMBERS = dict.fromkeys(
    (
        *MOMENTS,
        *DIAGNOSTIC_MOMENTS,
        "tau_after",
        "plateau_reached_after",
        "tau_examples",
        "width",
        "last_step",
        "diverged_at",
    ),
    "Int64",
)


@dataclass(frozen=True)
class PlannedRun:
    """A run that the parameters name.

    Attributes:
        condition: its name; of a transfer with the prefix ``transfer_``.
        seed: its seed.
        start_from: the condition whose last weights it starts from, or `RANDOM_WEIGHTS`.
        stage: the DVC stage that trains it.
    """

    condition: str
    seed: int
    start_from: str
    stage: str

    @property
    def name(self) -> str:
        """Name of its folder."""
        return run_name(self.condition, self.seed)


def planned_runs(
    conditions: Iterable[str], transfers: Iterable[str], seeds: list[int]
) -> list[PlannedRun]:
    """Return every run of a pipeline: conditions and transfers, each with every seed."""
    runs = []
    for seed in seeds:
        for name in conditions:
            stage = f"train@{run_name(name, seed)}"
            runs.append(PlannedRun(name, seed, RANDOM_WEIGHTS, stage))
        for name in transfers:
            stage = f"transfer@{run_name(name, seed)}"
            own = f"{TRANSFER_PREFIX}{name}"
            runs.append(PlannedRun(own, seed, f"forward_{name}", stage))
    return runs


def run_row(
    run: PlannedRun,
    condition: Condition,
    outcome: dict,
    transition: Transition,
    diagnostics: Diagnostics,
) -> dict:
    """Return a run as a row of the table.

    ``diverged_at`` is the step of its first loss that was not finite; ``last_step``, at which that
    was noticed, may be later.

    Each moment has a column with its step (the last step seen, if it is censored) and one with its
    status: ``observed``, ``censored``, or ``undefined`` (k = 1), then without a step. Moments of a
    run that diverged are ``diverged``: they were not reached before the loss stopped being finite.
    """
    row = {
        "run": run.name,
        "condition": run.condition,
        "start_from": run.start_from,
        "seed": run.seed,
        **condition.model_dump(),
        "dataset_size": condition.dataset_size,
        "log_k": math.log(condition.k),
        "run_status": outcome["status"],
        "last_step": outcome["last_step"],
        "diverged_at": outcome.get("diverged_at"),
    }
    diverged = outcome["status"] == "diverged"
    moments: dict[str, Moment | None] = {
        **{name: getattr(transition, name) for name in MOMENTS},
        **{name: getattr(diagnostics, name) for name in DIAGNOSTIC_MOMENTS},
    }
    for name, moment in moments.items():
        status = "undefined" if moment is None else "observed" if moment.observed else "censored"
        if diverged and status == "censored":
            status = "diverged"
        row[name] = None if moment is None else moment.step
        row[f"{name}_status"] = status
    for name in ("tau", "plateau_reached"):
        row[f"{name}_after"] = None if moments[name] is None else moments[name].after
    row["tau_examples"] = None if transition.tau is None else transition.tau.examples
    row["width"] = transition.width
    for quantity in ("lead_fraction", "lead_fraction_string", "final_ratio", "largest_z_gap"):
        row[quantity] = getattr(transition, quantity)
    for quantity in ("tau_loss_character_1", "tau_joint_loss"):
        row[quantity] = getattr(diagnostics, quantity)
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
    """Return the runs from random weights that differ from base only in what the sweep varies.

    How long and how closely a run was followed (`RECORDING_KEYS`) makes no difference, nor does the
    step budget where the learning rate does not depend on it. Conditions that are the same count
    once. With ``dataset_sizes`` only runs whose n_b is one of these sizes, divided by k and
    rounded, times the scale; the column ``nominal_size`` tells which, so a run can appear once for
    each size.
    """
    base = table[table["condition"] == "base"].iloc[0]
    ignored = [*RECORDING_KEYS, *(["max_steps"] if base["schedule"] == "constant" else [])]
    fixed = [key for key in BASE_KEYS if key not in (*sweep.vary, *ignored)]
    same = table[(table[fixed] == base[fixed]).all(axis=1)]
    same = same[same["start_from"] == RANDOM_WEIGHTS]
    alike = [key for key in BASE_KEYS if key not in ignored]
    base_first = same.sort_values("condition", key=lambda names: names != "base", kind="stable")
    same = base_first.drop_duplicates([*alike, "seed"]).sort_index()
    if not sweep.dataset_sizes:
        return same.reset_index(drop=True)
    parts = []
    for size in sweep.dataset_sizes:
        nominal = size * scale
        wanted = ((size / same["k"]).round() * scale).round().clip(lower=1)
        parts.append(same[same["n_b"] == wanted].assign(nominal_size=nominal))
    return pd.concat(parts, ignore_index=True)


def all_sweeps(table: pd.DataFrame, sweeps: Sweeps, scale: float) -> dict[str, pd.DataFrame]:
    """Return the runs of every sweep by its name; see `sweep_runs`."""
    return {
        name: sweep_runs(table, getattr(sweeps, name), scale) for name in type(sweeps).model_fields
    }


def transition_first(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs in their order, but those with a transition before the others.

    The first stands for a condition where one run must: that of the lowest seed, if it can.
    """
    return runs.sort_values("tau_status", key=lambda status: status != "observed", kind="stable")


def moment_text(run: pd.Series, moment: str) -> str:
    """Return a moment as text: ``850``, ``> 50000`` if censored, else its status."""
    status = run[f"{moment}_status"]
    return {"observed": f"{run[moment]}", "censored": f"> {run[moment]}"}.get(status, status)
