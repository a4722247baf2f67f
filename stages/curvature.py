"""Find the extreme eigenvalues of the Hessian at three moments of a followed run."""

import sys
from dataclasses import asdict

from mbc.checkpoints import choose_phases
from mbc.curvature import curvature, disjoint_samples
from stages.files import refusing
from stages.followed_run import FollowedRun, write_analysis


def analyse(run: FollowedRun) -> dict:
    """Return ``phases``: the curvature at one checkpoint of each phase, on two samples."""
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
            run.device,
        )
        phases[phase] = {"step": chosen.step, "fraction": chosen.fraction, **asdict(found)}
    return {"phases": phases}


if __name__ == "__main__":
    with refusing():
        write_analysis(analyse, *sys.argv[1:])
