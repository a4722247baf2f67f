"""Which checkpoints of a run are looked at."""

from dataclasses import dataclass

import pandas as pd

from mbc.transitions import Moment


@dataclass(frozen=True)
class Chosen:
    """A checkpoint that stands for a moment of a run.

    Attributes:
        step: steps taken when it was kept.
        fraction: step / tau; of a censored run, step / last step.
        phase: ``plateau`` up to 0.75 tau, ``transition`` up to 1.25 tau, then ``end``.
    """

    step: int
    fraction: float
    phase: str


PHASES = {"plateau": 0.75, "transition": 1.25, "end": float("inf")}
"""Phases of a run in their order, each up to this fraction of tau."""

PHASE_CENTRES = {"plateau": 0.5, "transition": 1.0, "end": float("inf")}
"""The fraction of tau at which a phase is looked at if only one checkpoint of it is; the end is the
last one."""


NEAR = 0.1
"""A checkpoint stands for a fraction of tau if it lies within this of it."""


def phase_of(fraction: float) -> str:
    """Return the phase of a moment, given as a fraction of tau."""
    return next(phase for phase, end in PHASES.items() if fraction <= end)


def choose(steps: list[int], tau: Moment, fractions: list[float]) -> list[Chosen]:
    """Return the checkpoints nearest to fractions of tau, each once, in the order of steps.

    Args:
        steps: steps of the checkpoints, rising; not empty.
        tau: waiting time of the run; of a censored run its last step.
        fractions: of tau; infinity asks for the last checkpoint.
    """
    wanted = [min(fraction * tau.step, steps[-1]) for fraction in fractions]
    nearest = {min(steps, key=lambda step: (abs(step - goal), step)) for goal in wanted}
    chosen = []
    for step in sorted(nearest):
        fraction = step / tau.step
        chosen.append(Chosen(step, fraction, phase_of(fraction)))
    return chosen


def choose_phases(steps: list[int], tau: Moment) -> dict[str, Chosen]:
    """Return one checkpoint for each phase, the one nearest to its centre; fewer if they agree.

    A run that ended before 1.25 tau has no ``end``.
    """
    found: dict[str, Chosen] = {}
    for chosen in choose(steps, tau, list(PHASE_CENTRES.values())):
        found.setdefault(chosen.phase, chosen)
    return found


def at_fraction(table: pd.DataFrame, fraction: float) -> pd.DataFrame:
    """Return for each run the row of the checkpoint nearest to a fraction of tau, if one is near.

    Args:
        table: a row for each ``run`` and checkpoint, with the checkpoint's ``fraction`` of tau.
        fraction: of tau; see `NEAR`.
    """
    distance = (table["fraction"] - fraction).abs()
    nearest = distance.groupby(table["run"]).idxmin()
    return table.loc[nearest[distance.loc[nearest].to_numpy() <= NEAR]]
