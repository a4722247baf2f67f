"""Readings of a history beside the paper's: what its wording would have to show, too.

A moment here is as in `mbc.transitions`.
"""

from dataclasses import dataclass

import pandas as pd

from mbc.settings import TransitionSettings
from mbc.transitions import Moment, onset, waiting_time


@dataclass(frozen=True)
class Diagnostics:
    """What a history shows beside its moments; None where k = 1, or where there is no tau.

    Attributes:
        onset_b_string: as the onset, but of the B-gap of the whole answer: when B begins to matter.
        loss_onset_character: as the loss onset, but of the loss of the answer's first character,
            of which the onset's z-gap is, too.
        tau_loss_character_1: loss of the answer's first character at tau, in nats.
        tau_joint_loss: cross-entropy of the whole answer at tau, in nats.
    """

    onset_b_string: Moment | None = None
    loss_onset_character: Moment | None = None
    tau_loss_character_1: float | None = None
    tau_joint_loss: float | None = None


def diagnose(
    history: pd.DataFrame, k: int, tau: Moment | None, settings: TransitionSettings
) -> Diagnostics:
    """Return what else a history shows.

    Args:
        history: rows of `mbc.training.HistoryRow.flat`.
        k: targets in each fibre.
        tau: the run's waiting time; None where k = 1.
        settings: thresholds.
    """
    if tau is None:
        return Diagnostics()
    first_character = history.assign(candidate_loss=history["loss_character_1"])
    at_tau = {}
    if tau.observed:
        row = history.loc[history["step"] == tau.step].iloc[0]
        at_tau = {f"tau_{name}": float(row[name]) for name in ("loss_character_1", "joint_loss")}
    return Diagnostics(
        onset_b_string=onset(
            history, settings.onset_gap, settings.onset_evaluations, "b_gap_string"
        ),
        loss_onset_character=waiting_time(first_character, k, settings.loss_onset_fraction),
        **at_tau,
    )
