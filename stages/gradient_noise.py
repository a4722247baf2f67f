"""Measure the covariance of mini-batch gradients along the Hessian's extreme eigenvectors."""

import sys
from dataclasses import asdict

from mbc.checkpoints import choose_phases
from mbc.curvature import disjoint_samples, extreme_eigenpairs, hessian_product
from mbc.gradient_noise import batch_gradients, batch_size_slope, noise_shares, noise_size
from stages.files import refusing
from stages.followed_run import FollowedRun, write_analysis

LARGEST = 3
"""How many of the largest eigenvalues' directions are looked at."""


def analyse(run: FollowedRun) -> dict:
    """Return size and shares of the noise on the plateau, for several batch sizes."""
    settings, condition = run.settings, run.condition
    chosen = choose_phases(run.steps, run.tau)["plateau"]
    weights = run.weights(chosen.step)
    size = sum(weight.numel() for weight in weights.values())
    sample, _ = disjoint_samples(len(run.data.tokens), settings.curvature_examples, run.seed)
    pairs = extreme_eigenpairs(
        hessian_product(condition, weights, run.data, sample, run.device),
        size,
        settings.curvature_products,
        run.seed,
        n_largest=min(LARGEST, size - 1),
    )
    sizes, shares = [], []
    for batch_size in settings.noise_batch_sizes:
        if batch_size > len(run.data.tokens) // 2:  # little noise is left in larger batches
            continue
        found = batch_gradients(
            condition,
            weights,
            run.data,
            pairs.vectors,
            batch_size,
            settings.noise_batches,
            run.seed,
            run.device,
        )
        sizes.append(noise_size(found, condition.lr))
        shares += noise_shares(found, pairs.values, size)
    return {
        "lr": condition.lr,
        "step": chosen.step,
        "fraction": chosen.fraction,
        "parameters": size,
        "products": pairs.products,
        "residuals": pairs.residuals,
        "batch_size_slope": batch_size_slope(sizes),
        "sizes": [asdict(found) for found in sizes],
        "shares": [asdict(share) for share in shares],
    }


if __name__ == "__main__":
    with refusing():
        write_analysis(analyse, *sys.argv[1:])
