"""Measure the covariance of mini-batch gradients along the Hessian's extreme eigenvectors."""

import sys
from dataclasses import asdict
from pathlib import Path

import torch

from mbc.checkpoints import choose_phases
from mbc.curvature import disjoint_samples, extreme_eigenpairs, hessian_product
from mbc.gradient_noise import batch_gradients, batch_size_slope, noise_shares, noise_size
from stages.files import refusing, write_json
from stages.followed_run import read_followed_run

LARGEST = 3
"""How many of the largest eigenvalues' directions are looked at."""


def main(
    params_file: str,
    condition_file: str,
    dataset_file: str,
    history_file: str,
    weights_folder: str,
    seed: str,
    metrics_file: str,
) -> None:
    """Write size and shares of the noise on the plateau, for several batch sizes."""
    run = read_followed_run(
        params_file, condition_file, dataset_file, history_file, weights_folder, seed
    )
    settings, condition = run.settings, run.condition
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    chosen = choose_phases(run.steps, run.tau)["plateau"]
    weights = run.weights(chosen.step)
    size = sum(weight.numel() for weight in weights.values())
    sample, _ = disjoint_samples(len(run.data.tokens), settings.curvature_examples, run.seed)
    pairs = extreme_eigenpairs(
        hessian_product(condition, weights, run.data, sample, device),
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
            device,
        )
        sizes.append(noise_size(found, condition.lr))
        shares += noise_shares(found, pairs.values, size)
    results = {
        "k": condition.k,
        "lr": condition.lr,
        "step": chosen.step,
        "fraction": chosen.fraction,
        "tau": asdict(run.tau),
        "parameters": size,
        "products": pairs.products,
        "residuals": pairs.residuals,
        "batch_size_slope": batch_size_slope(sizes),
        "sizes": [asdict(found) for found in sizes],
        "shares": [asdict(share) for share in shares],
    }
    write_json(Path(metrics_file), results)


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
