"""Follow the accuracy of a run's groups through its checkpoints."""

import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from mbc.checkpoints import choose
from mbc.group_curves import SOLVED, curve_point, group_transition
from mbc.groups import draw_groups, group_accuracies
from mbc.network import network_of
from stages.files import refusing, write_json
from stages.followed_run import read_followed_run

WIDTH_FRACTIONS = [0.5 + 0.125 * i for i in range(11)]
"""Fractions of tau, up to 1.75, that are looked at whatever the parameters say: they resolve the
transition's width."""


def main(
    params_file: str,
    condition_file: str,
    dataset_file: str,
    history_file: str,
    weights_folder: str,
    seed: str,
    metrics_file: str,
) -> None:
    """Write the groups' curve, and the width of their transition beside independent groups'."""
    run = read_followed_run(
        params_file, condition_file, dataset_file, history_file, weights_folder, seed
    )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    k = run.condition.k
    groups = draw_groups(len(run.data.tokens) // k, run.settings.groups, run.seed)
    fractions = [0.0, *run.settings.fractions, *WIDTH_FRACTIONS, float("inf")]
    steps = [chosen.step for chosen in choose(run.steps, run.tau, fractions)]
    accuracies = []
    for step in steps:
        weights = {name: weight.to(device) for name, weight in run.weights(step).items()}
        network = network_of(run.condition, weights)
        accuracies.append(group_accuracies(network, run.data, groups, device))
    curve = [
        asdict(curve_point(step, run.tau, of_groups, k))
        for step, of_groups in zip(steps, accuracies, strict=True)
    ]
    transition = group_transition(steps, np.stack(accuracies), k, run.tau, run.seed)
    results = {
        "k": k,
        "tau": asdict(run.tau),
        "solved_from": SOLVED,
        "curve": curve,
        "transition": asdict(transition),
    }
    write_json(Path(metrics_file), results)


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
