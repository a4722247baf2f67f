"""Find the extreme eigenvalues of the Hessian at three moments of a followed run."""

import sys
from dataclasses import asdict
from pathlib import Path

import torch

from mbc.checkpoints import choose_phases
from mbc.curvature import curvature, disjoint_samples
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
    """Write ``phases``: the curvature at one checkpoint of each phase, on two samples."""
    run = read_followed_run(
        params_file, condition_file, dataset_file, history_file, weights_folder, seed
    )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    samples = disjoint_samples(len(run.data.tokens), run.settings.curvature_examples, run.seed)
    phases = {}
    for phase, chosen in choose_phases(run.steps, run.tau).items():
        found = curvature(
            run.condition,
            run.weights(chosen.step),
            run.data,
            samples,
            run.settings.curvature_products,
            run.seed,
            device,
        )
        phases[phase] = {"step": chosen.step, "fraction": chosen.fraction, **asdict(found)}
    results = {"k": run.condition.k, "tau": asdict(run.tau), "phases": phases}
    write_json(Path(metrics_file), results)


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
