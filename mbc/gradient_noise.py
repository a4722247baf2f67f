"""Gradient noise against curvature: the experiment that section 6 of the paper proposes.

The paper holds that mini-batch noise lies along directions of high curvature and so keeps a run on
its plateau. Here the covariance of mini-batch gradients is estimated and its share along the
Hessian's eigenvectors compared with that of noise without direction.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats

from mbc.conditions import Condition, in_full_precision
from mbc.model import Weights
from mbc.network import leaves, network_of
from mbc.task import Sequences, generator
from mbc.training import batch_loss, training_tree


@dataclass(frozen=True)
class BatchGradients:
    """What is kept of the gradients of many mini-batches of one size.

    Attributes:
        batch_size: examples in each, drawn without repetition.
        dataset_size: examples that they are drawn from.
        squares: squared norm of each batch's gradient, [batches].
        projections: along each direction, [batches, directions].
        mean_square: squared norm of the mean of all.
    """

    batch_size: int
    dataset_size: int
    squares: np.ndarray
    projections: np.ndarray
    mean_square: float


@dataclass(frozen=True)
class NoiseShare:
    """The share of the noise along one direction.

    Attributes:
        batch_size: examples in a batch.
        direction: ``smallest``, or ``largest 1``, ``largest 2``, ... by eigenvalue.
        eigenvalue: curvature along it.
        variance: of the mini-batch gradient along it.
        share: variance / trace of the covariance.
        share_over_isotropic: share times the number of parameters; 1 for noise without direction.
        low: lower end of its 95% interval (chi-square, over batches).
        high: upper end.
    """

    batch_size: int
    direction: str
    eigenvalue: float
    variance: float
    share: float
    share_over_isotropic: float
    low: float
    high: float


@dataclass(frozen=True)
class NoiseSize:
    """How large the noise of one batch size is.

    Attributes:
        batch_size: examples in a batch.
        batches: batches behind the estimate.
        trace: of the covariance of the mini-batch gradient.
        independent_trace: the same if the examples of a batch were drawn independently: without
            repetition it is smaller by the factor (D - batch size) / (D - 1).
        signal: squared norm of the mean gradient, noise subtracted; may come out below 0.
        noise_scale: batch size * independent trace / signal, in examples: the batch size at which
            noise and signal are equal (McCandlish et al. 2018, arXiv:1812.06162); None without
            signal.
        step_noise: lr^2 * trace, the variance that one step of plain gradient descent would add;
            AdamW divides by its second moment, so only ratios between runs mean something.
        temperature: lr / batch size.
    """

    batch_size: int
    batches: int
    trace: float
    independent_trace: float
    signal: float
    noise_scale: float | None
    step_noise: float
    temperature: float


def batch_gradients(
    condition: Condition,
    weights: Weights,
    data: Sequences,
    directions: np.ndarray,
    batch_size: int,
    batches: int,
    seed: int,
    device: torch.device,
) -> BatchGradients:
    """Draw mini-batches, each without repetition, and measure their gradients at given weights.

    There is no label noise: the noise is that of the choice of examples.

    Args:
        condition: what the network is; products are taken in float32.
        weights: where gradients are taken.
        data: all examples.
        directions: unit vectors, [directions, n], entries in the order of the weights.
        batch_size: examples in a batch.
        batches: how many.
        seed: of the draws.
        device: where to compute.
    """
    network = network_of(in_full_precision(condition), leaves(weights, device))
    along = torch.from_numpy(directions).to(device)
    rng = generator(seed, f"gradient noise at batch size {batch_size}")
    total = torch.zeros(along.shape[1], dtype=torch.float64, device=device)
    squares, projections = [], []
    for _ in range(batches):
        batch = rng.choice(len(data.tokens), size=batch_size, replace=False)
        loss = batch_loss(network, *training_tree(data, batch, batch, device))
        parts = torch.autograd.grad(loss, list(network.weights.values()))
        gradient = torch.cat([part.flatten() for part in parts])
        total += gradient
        squares.append(gradient.double().square().sum().item())
        projections.append((along @ gradient).double().cpu().numpy())
    mean_square = (total / batches).square().sum().item()
    return BatchGradients(
        batch_size, len(data.tokens), np.array(squares), np.array(projections), mean_square
    )


def noise_size(found: BatchGradients, lr: float) -> NoiseSize:
    """Return the size of the noise, without the bias of a finite number of batches.

    Args:
        found: gradients of at least 2 batches.
        lr: learning rate of the run.
    """
    n = len(found.squares)
    trace = _trace(found)
    independent = trace * (found.dataset_size - 1) / max(1, found.dataset_size - found.batch_size)
    signal = found.mean_square - trace / n
    return NoiseSize(
        batch_size=found.batch_size,
        batches=n,
        trace=trace,
        independent_trace=independent,
        signal=signal,
        noise_scale=found.batch_size * independent / signal if signal > 0 else None,
        step_noise=lr**2 * trace,
        temperature=lr / found.batch_size,
    )


def noise_shares(
    found: BatchGradients, eigenvalues: tuple[float, ...], n_parameters: int
) -> list[NoiseShare]:
    """Return the share of the noise along each direction.

    Args:
        found: gradients of at least 2 batches; the first direction is that of the smallest
            eigenvalue, then the largest ones follow, the largest last.
        eigenvalues: of the directions.
        n_parameters: of the network.
    """
    n, trace = len(found.squares), _trace(found)
    variances = found.projections.var(axis=0, ddof=1)
    low, high = (n - 1) / stats.chi2.ppf([0.975, 0.025], n - 1)
    n_largest = len(eigenvalues) - 1
    names = ["smallest", *(f"largest {n_largest - i}" for i in range(n_largest))]
    shares = []
    for name, eigenvalue, variance in zip(names, eigenvalues, variances.tolist(), strict=True):
        share = variance / trace
        shares.append(
            NoiseShare(
                batch_size=found.batch_size,
                direction=name,
                eigenvalue=eigenvalue,
                variance=variance,
                share=share,
                share_over_isotropic=share * n_parameters,
                low=float(share * n_parameters * low),
                high=float(share * n_parameters * high),
            )
        )
    return shares


def batch_size_slope(sizes: list[NoiseSize]) -> float | None:
    """Return the slope of log independent trace on log batch size; None for a single size.

    -1 unless something is wrong: it checks the estimates of the trace against each other.
    """
    if len(sizes) < 2:
        return None
    logs = [[math.log(s.batch_size) for s in sizes], [math.log(s.independent_trace) for s in sizes]]
    return float(stats.linregress(*logs).slope)


def _trace(found: BatchGradients) -> float:
    n = len(found.squares)
    return float((found.squares.sum() - n * found.mean_square) / (n - 1))
