"""Measure how straight a run's weights move from checkpoint to checkpoint."""

import math
import sys
from dataclasses import asdict
from pathlib import Path

from mbc.checkpoints import phase_of
from mbc.trajectories import (
    displacements,
    equidistant,
    parameter_counts,
    phase_cosines,
    random_walk,
    sampling_error,
)
from stages.files import refusing, write_json
from stages.followed_run import read_followed_run


def main(
    params_file: str,
    condition_file: str,
    dataset_file: str,
    history_file: str,
    weights_folder: str,
    seed: str,
    metrics_file: str,
) -> None:
    """Write the cosines between consecutive displacements beside those of a random walk."""
    run = read_followed_run(
        params_file, condition_file, dataset_file, history_file, weights_folder, seed
    )
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
    results = {
        "k": condition.k,
        "tau": asdict(run.tau),
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
    write_json(Path(metrics_file), results)


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
