"""The moments of a run: when it reaches, leaves and has left its plateau.

All times are optimiser steps of the evaluations in a run's history, so they are known to within
the distance between two evaluations. A moment that a run did not reach is censored: it is kept
as "later than the last step".
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mbc.settings import TransitionSettings
from mbc.task import N_CHARACTERS


@dataclass(frozen=True)
class Moment:
    """When something first happened in a run.

    Attributes:
        step: the step at which it was first seen; if it was not, the last one at which it is known
            not to have happened, mostly the run's last.
        observed: whether it was seen; if not, the moment is censored.
        after: step of the evaluation before, at which it had not happened yet; the moment itself
            lies in (after, step]. -1 if it was seen at the first evaluation.
        examples: examples seen up to ``step`` (the paper calls these tokens).
    """

    step: int
    observed: bool
    after: int
    examples: int


@dataclass(frozen=True)
class Plateau:
    """Averages over the evaluations within a window of the waiting time.

    Attributes:
        height: candidate loss in nats.
        ratio: height / log k.
        z_gap: rise in nats of the first character's loss when z is shuffled.
        b_gap: the same when B is shuffled.
        fibre_mass: probability on the candidates' first characters.
        joint_loss: cross-entropy of the whole answer in nats.
        evaluations: number of evaluations averaged.
        peak_ratio: largest candidate loss from the window to tau / log k. Above 1 the network is
            more sure of wrong candidates than of the right one before it learns to choose.
    """

    height: float
    ratio: float
    z_gap: float
    b_gap: float
    fibre_mass: float
    joint_loss: float
    evaluations: int
    peak_ratio: float


@dataclass(frozen=True)
class Transition:
    """The moments of one run; None where a moment is not defined (k = 1 has no plateau).

    Attributes:
        tau: waiting time: candidate loss below a fraction of log k (section 2 of the paper).
        character_tau: mean loss by target character below a fraction of log 36; means the same
            forward and backward, and is defined for k = 1.
        onset: first of several evaluations in a row with a z-gap above a threshold (section 2).
        onset_string: the same with the z-gap of the whole answer.
        loss_onset: candidate loss below 0.9 log k.
        marginal: the marginal P(A|B) is known while z is not used: joint loss near log k, mass on
            the fibre and B-gap large, before the onset. The paper's wording taken strictly.
        plateau_reached: candidate loss within 5% of log k, or below.
        end: candidate loss below 0.1 log k.
        width: steps from loss onset to end; None unless both were seen.
        lead_fraction: (loss onset - onset) / loss onset; None unless both were seen.
        lead_fraction_string: the same with ``onset_string``.
        plateau: averages on the plateau; None if the window holds no evaluation.
        final_ratio: last candidate loss / log k.
        largest_z_gap: largest rise in nats of the first character's loss when z is shuffled.
    """

    tau: Moment | None = None
    character_tau: Moment | None = None
    onset: Moment | None = None
    onset_string: Moment | None = None
    loss_onset: Moment | None = None
    marginal: Moment | None = None
    plateau_reached: Moment | None = None
    end: Moment | None = None
    width: int | None = None
    lead_fraction: float | None = None
    lead_fraction_string: float | None = None
    plateau: Plateau | None = None
    final_ratio: float | None = None
    largest_z_gap: float | None = None


PLATEAU_REACHED_FRACTION = 1.05


def measure(history: pd.DataFrame, k: int, settings: TransitionSettings) -> Transition:
    """Return the moments of a run.

    Args:
        history: rows of `mbc.training.HistoryRow.flat`.
        k: targets in each fibre.
        settings: thresholds.
    """
    by_character = character_tau(history, settings.character_fraction)
    if k == 1:
        return Transition(character_tau=by_character)
    loss_onset = waiting_time(history, k, settings.loss_onset_fraction)
    end = waiting_time(history, k, settings.end_fraction)
    start, start_string = (
        onset(history, settings.onset_gap, settings.onset_evaluations, column)
        for column in ("z_gap", "z_gap_string")
    )
    tau = waiting_time(history, k, settings.tau_fraction)
    return Transition(
        tau=tau,
        character_tau=by_character,
        onset=start,
        onset_string=start_string,
        loss_onset=loss_onset,
        marginal=marginal_learned(history, k, start, settings),
        plateau_reached=waiting_time(history, k, PLATEAU_REACHED_FRACTION),
        end=end,
        width=end.step - loss_onset.step if end.observed and loss_onset.observed else None,
        lead_fraction=lead_fraction(start, loss_onset),
        lead_fraction_string=lead_fraction(start_string, loss_onset),
        plateau=plateau(history, k, tau, settings.plateau_window),
        final_ratio=float(history["candidate_loss"].iloc[-1]) / math.log(k),
        largest_z_gap=float(history["z_gap"].max()),
    )


def waiting_time(history: pd.DataFrame, k: int, fraction: float) -> Moment:
    """Return the first evaluation with a candidate loss below ``fraction`` of log k, in steps."""
    met = history["candidate_loss"].to_numpy() < fraction * math.log(k)
    return _first(history, met)


def character_tau(history: pd.DataFrame, fraction: float) -> Moment:
    """Return the first evaluation with a mean loss by character below ``fraction`` of log 36."""
    mean_loss = history.filter(like="loss_character_").mean(axis=1).to_numpy()
    met = mean_loss < fraction * math.log(N_CHARACTERS)
    return _first(history, met)


def lead_fraction(start: Moment, loss_onset: Moment) -> float | None:
    """Return (loss onset - onset) / loss onset (section 4); None unless both were observed."""
    if not (start.observed and loss_onset.observed and loss_onset.step > 0):
        return None
    return (loss_onset.step - start.step) / loss_onset.step


def marginal_learned(
    history: pd.DataFrame, k: int, start: Moment, settings: TransitionSettings
) -> Moment:
    """Return the first evaluation before the onset at which the marginal P(A|B) is known.

    There the cross-entropy of the whole answer is near log k, the first character's probability
    lies on the fibre, and the answer depends on B: what a plateau at log k of the candidate loss
    alone does not show.

    Args:
        history: of the run.
        k: targets in each fibre.
        start: its onset.
        settings: thresholds.
    """
    met = (
        (history["joint_loss"] < settings.marginal_ratio * math.log(k))
        & (history["fibre_mass"] > settings.marginal_mass)
        & (history["b_gap"] > settings.marginal_b_gap)
    )
    met &= history["step"] < start.step + (0 if start.observed else 1)
    return _first(history, met.to_numpy())


def onset(history: pd.DataFrame, gap: float, evaluations: int, column: str) -> Moment:
    """Return the first of ``evaluations`` evaluations in a row with a z-gap above ``gap`` nats.

    A run that ends before the row is complete is censored at the evaluation before the row. A
    value that is not a number breaks the row.
    """
    above = history[column].to_numpy() > gap
    following = np.zeros(len(above), dtype=int)
    count = 0
    for index in range(len(above) - 1, -1, -1):
        count = count + 1 if above[index] else 0
        following[index] = count
    met = following >= evaluations
    if not met.any():
        unfinished = int(np.logical_and.accumulate(above[::-1]).sum())
        history = history.iloc[: max(1, len(above) - unfinished)]
    return _first(history, met)


def plateau(
    history: pd.DataFrame, k: int, tau: Moment, window: tuple[float, float]
) -> Plateau | None:
    """Return averages over the evaluations between two fractions of tau.

    Of a censored run the fractions are those of its last step.
    """
    inside = history[history["step"].between(window[0] * tau.step, window[1] * tau.step)]
    if inside.empty:
        return None
    later = history[history["step"].between(window[0] * tau.step, tau.step)]
    mean = inside.mean(numeric_only=True)
    return Plateau(
        height=float(mean["candidate_loss"]),
        ratio=float(mean["candidate_loss"]) / math.log(k),
        z_gap=float(mean["z_gap"]),
        b_gap=float(mean["b_gap"]),
        fibre_mass=float(mean["fibre_mass"]),
        joint_loss=float(mean["joint_loss"]),
        evaluations=len(inside),
        peak_ratio=float(later["candidate_loss"].max()) / math.log(k),
    )


def _first(history: pd.DataFrame, happened: np.ndarray) -> Moment:
    steps, examples = history["step"].tolist(), history["examples"].tolist()
    if not happened.any():
        return Moment(steps[-1], observed=False, after=steps[-1], examples=examples[-1])
    index = int(happened.argmax())
    return Moment(steps[index], True, steps[index - 1] if index else -1, examples[index])
