"""Follow the accuracy of a run's groups through its checkpoints."""

import sys
from dataclasses import asdict

import numpy as np

from mbc.checkpoints import choose
from mbc.group_curves import SOLVED, curve_point, group_transition
from mbc.groups import draw_groups, group_accuracies
from mbc.network import network_of
from stages.files import refusing
from stages.followed_run import FollowedRun, write_analysis

WIDTH_FRACTIONS = [0.5 + 0.125 * i for i in range(11)]
"""Fractions of tau, up to 1.75, that are looked at whatever the parameters say: they resolve the
transition's width."""


def analyse(run: FollowedRun) -> dict:
    """Return the groups' curve, and the width of their transition beside independent groups'."""
    k = run.condition.k
    groups = draw_groups(len(run.data.tokens) // k, run.settings.groups, run.seed)
    fractions = [0.0, *run.settings.fractions, *WIDTH_FRACTIONS, float("inf")]
    steps = [chosen.step for chosen in choose(run.steps, run.tau, fractions)]
    accuracies = []
    for step in steps:
        network = network_of(run.condition, run.weights(step))
        accuracies.append(group_accuracies(network, run.data, groups, run.device))
    curve = [
        asdict(curve_point(step, run.tau, of_groups, k))
        for step, of_groups in zip(steps, accuracies, strict=True)
    ]
    transition = group_transition(steps, np.stack(accuracies), k, run.tau, run.seed)
    return {
        "solved_from": SOLVED,
        "curve": curve,
        "transition": asdict(transition),
    }


if __name__ == "__main__":
    with refusing():
        write_analysis(analyse, *sys.argv[1:])
