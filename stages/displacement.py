"""Measure how straight a run's weights move from checkpoint to checkpoint."""

import math
import sys
from dataclasses import asdict

from mbc.checkpoints import phase_of
from mbc.trajectories import (
    displacements,
    equidistant,
    parameter_counts,
    phase_cosines,
    random_walk,
    sampling_error,
)
from stages.files import refusing
from stages.followed_run import FollowedRun, write_analysis


def analyse(run: FollowedRun) -> dict:
    """Return the cosines between consecutive displacements beside those of a random walk."""
    condition, settings = run.condition, run.settings
    # a multiple by its definition, so that every displacement ends at a checkpoint at any scale
    length = settings.displacement_steps // settings.checkpoint_every * condition.checkpoint_every
    steps = equidistant(run.steps, length)
    found = list(displacements(run.weights, steps))
    batches_per_epoch = math.ceil(len(run.data.tokens) / condition.batch_size)
    walks = {
        step: random_walk(
            step,
            length,
            lr=condition.lr,
            weight_decay=condition.weight_decay,
            batches_per_epoch=batches_per_epoch,
        )
        for step in steps[1:-1]
    }
    rows = []
    for displacement in found:
        fraction = displacement.start / run.tau.step
        row = {**asdict(displacement), "fraction": fraction, "phase": phase_of(fraction)}
        if displacement.start in walks:
            row |= asdict(walks[displacement.start])
        rows.append(row)
    counts = parameter_counts(run.weights(steps[0]))
    return {
        "length": length,
        "batches_per_epoch": batches_per_epoch,
        "parameters": counts,
        "sampling_error": {part: sampling_error(0, count) for part, count in counts.items()},
        "displacements": rows,
        "phases": {
            phase: asdict(cosines)
            for phase, cosines in phase_cosines(found, walks, run.tau).items()
        },
    }


if __name__ == "__main__":
    with refusing():
        write_analysis(analyse, *sys.argv[1:])
