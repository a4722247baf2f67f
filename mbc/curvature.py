"""The Hessian of the training loss: its largest and its most negative eigenvalue (appendix J).

An eigenvalue near 0 is easily an accident of the sample or of rounding. So every value comes with
the residual of its eigenvector, the error of its float32 products and the same on a second sample,
and the smallest counts as negative only beyond all three, and only if its direction curves downward
on examples that did not choose it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg import eigh_tridiagonal

from mbc.conditions import Condition, in_full_precision
from mbc.model import Weights
from mbc.network import leaves, network_of
from mbc.task import Sequences, generator
from mbc.training import batch_loss, training_tree

Product = Callable[[np.ndarray], np.ndarray]
"""Function from a vector [n] to a symmetric matrix times it, [n]."""

EXAMPLES_AT_ONCE = 256
"""Examples that pass through the network together; it bounds the memory."""

KEPT_EXAMPLES = 2048
"""Up to this many examples the graph of the gradient is kept from product to product, which saves
a third of the time and takes about 1 MB an example in the paper's network."""

LARGEST_TOLERANCE = 0.01
SMALLEST_TOLERANCE = 0.05
"""An eigenvalue has converged when its residual is below this share of it."""

LEAST_PRODUCTS = 10

ROUNDING_EXAMPLES = 128
"""Examples on which float32 products are compared with float64 ones."""


@dataclass(frozen=True)
class Eigenpairs:
    """Approximate eigenvalues at both ends of a spectrum.

    Attributes:
        values: the most negative one, then the largest ones, the largest last.
        residuals: ||H v - value v|| of each, by one more product; an eigenvalue lies within it.
        vectors: unit vectors, [values, n], float32.
        products: products with the matrix that were taken.
    """

    values: tuple[float, ...]
    residuals: tuple[float, ...]
    vectors: np.ndarray
    products: int


@dataclass(frozen=True)
class SampleCurvature:
    """The ends of the Hessian's spectrum on one sample of examples.

    Attributes:
        examples: size of the sample.
        products: Hessian-vector products taken.
        largest: largest eigenvalue.
        largest_residual: its residual.
        largest_converged: whether that is below `LARGEST_TOLERANCE` times the value.
        smallest: most negative eigenvalue.
        smallest_residual: its residual.
        smallest_converged: whether that is below `SMALLEST_TOLERANCE` times its size.
        rounding: ||H v in float32 - H v in float64|| at the eigenvector of ``smallest``, on
            `ROUNDING_EXAMPLES` of the examples.
    """

    examples: int
    products: int
    largest: float
    largest_residual: float
    largest_converged: bool
    smallest: float
    smallest_residual: float
    smallest_converged: bool
    rounding: float


@dataclass(frozen=True)
class Curvature:
    """Curvature at one checkpoint, on two disjoint samples.

    Attributes:
        first: on the first sample.
        second: on the second.
        spread: difference of their smallest eigenvalues.
        transferred: curvature of the second sample along the first one's most negative direction,
            v' H v: near ``first.smallest`` if the direction is the task's and not the sample's.
        negative: whether ``smallest`` is below 0 by more than residual, rounding and spread
            together, on both samples, and ``transferred`` is below 0, too.
        anisotropy: mean largest / size of the mean smallest eigenvalue; None unless negative.
        anisotropy_at_least: mean largest eigenvalue / (size of the more negative smallest one plus
            its errors): what the anisotropy is at least, whatever the sign.
        statement: the same in words.
    """

    first: SampleCurvature
    second: SampleCurvature
    spread: float
    transferred: float
    negative: bool
    anisotropy: float | None
    anisotropy_at_least: float
    statement: str


def disjoint_samples(n_examples: int, most: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw two samples of ``most`` examples without a common one, at most half of all in each.

    Returns:
        Two arrays of example indices in rising order, so that neighbours share base strings.
    """
    size = min(most, n_examples // 2)
    drawn = generator(seed, "curvature samples").permutation(n_examples)
    return np.sort(drawn[:size]), np.sort(drawn[size : 2 * size])


def hessian_product(
    condition: Condition,
    weights: Weights,
    data: Sequences,
    examples: np.ndarray,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
) -> Product:
    """Return the function v -> H v of the training loss, mean over examples, at given weights.

    By differentiating twice backward, the examples a part at a time. Products are taken in
    ``dtype`` whatever the condition's precision; there is no label noise, and nothing random.

    Args:
        condition: what the network is.
        weights: where the Hessian is taken; v lists their entries in the order of the dictionary.
        data: all examples.
        examples: those whose mean loss is differentiated, [examples].
        device: where to compute.
        dtype: of weights and products.
    """
    network = network_of(in_full_precision(condition), leaves(weights, device, dtype))
    parameters = list(network.weights.values())
    parts = [
        examples[first : first + EXAMPLES_AT_ONCE]
        for first in range(0, len(examples), EXAMPLES_AT_ONCE)
    ]

    def gradients_of(part: np.ndarray) -> tuple[torch.Tensor, ...]:
        loss = batch_loss(network, *training_tree(data, part, part, device))
        return torch.autograd.grad(loss, parameters, create_graph=True)

    keep = len(examples) <= KEPT_EXAMPLES
    kept = [gradients_of(part) for part in parts] if keep else []

    def product(vector: np.ndarray) -> np.ndarray:
        direction = _unflatten(torch.from_numpy(vector).to(device, dtype), parameters)
        total = [torch.zeros_like(parameter) for parameter in parameters]
        for index, part in enumerate(parts):
            gradients = kept[index] if keep else gradients_of(part)
            slope = sum((g * d).sum() for g, d in zip(gradients, direction, strict=True))
            second = torch.autograd.grad(slope, parameters, retain_graph=keep)
            for sum_, derivative in zip(total, second, strict=True):
                sum_.add_(derivative, alpha=len(part) / len(examples))
        return torch.cat([sum_.flatten() for sum_ in total]).double().cpu().numpy()

    return product


def extreme_eigenpairs(
    product: Product, size: int, most_products: int, seed: int, n_largest: int = 1
) -> Eigenpairs:
    """Return the most negative and the largest eigenvalues of a symmetric matrix.

    By Lanczos' method with full reorthogonalisation, which approaches both ends of the spectrum
    with the same products and says how far it got: `scipy.sparse.linalg.eigsh` restarts, which
    costs products, and returns nothing where it does not converge. It stops when both ends have
    converged or the products are used up.

    Args:
        product: v -> H v.
        size: n.
        most_products: most of them.
        seed: of the start vector.
        n_largest: how many of the largest eigenvalues.
    """
    basis = np.empty((min(most_products, size), size), dtype=np.float32)
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    vector = generator(seed, "Lanczos start").standard_normal(size)
    vector /= np.linalg.norm(vector)
    while True:
        count = len(diagonal)
        basis[count] = vector
        image = product(vector)
        diagonal.append(float(vector @ image))
        known = basis[: count + 1]
        for _ in range(2):  # once is not enough in floating point
            image = image - known.T @ (known @ image.astype(np.float32)).astype(np.float32)
        norm = float(np.linalg.norm(image))
        values, small = eigh_tridiagonal(np.array(diagonal), np.array(off_diagonal))
        residuals = norm * np.abs(small[-1])
        done = norm < 1e-7 * max(1e-30, np.abs(values).max()) or count + 1 == len(basis)
        if count + 1 >= LEAST_PRODUCTS and _converged(values, residuals, n_largest):
            done = True
        if done:
            break
        off_diagonal.append(norm)
        vector = image / norm
    chosen = [0, *range(max(1, len(values) - n_largest), len(values))]
    vectors = (known.T @ small[:, chosen].astype(np.float32)).T
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    # the recurrence's own residuals do not see rounding: they fall below any float32 product's
    images = [product(vector.astype(float)) for vector in vectors]
    rayleigh = [float(v @ image) for v, image in zip(vectors, images, strict=True)]
    return Eigenpairs(
        values=tuple(rayleigh),
        residuals=tuple(
            float(np.linalg.norm(image - value * vector))
            for image, value, vector in zip(images, rayleigh, vectors, strict=True)
        ),
        vectors=vectors,
        products=len(diagonal) + len(chosen),
    )


def curvature(
    condition: Condition,
    weights: Weights,
    data: Sequences,
    samples: tuple[np.ndarray, np.ndarray],
    most_products: int,
    seed: int,
    device: torch.device,
) -> Curvature:
    """Return the curvature at given weights on two disjoint samples.

    Args:
        condition: what the network is.
        weights: where the Hessian is taken.
        data: all examples.
        samples: of `disjoint_samples`.
        most_products: most Hessian-vector products on each sample.
        seed: of the start vector.
        device: where to compute.
    """
    size = sum(weight.numel() for weight in weights.values())
    found = []
    bottom, transferred = None, 0.0
    for examples in samples:
        product = hessian_product(condition, weights, data, examples, device)
        if bottom is not None:
            transferred = float(bottom @ product(bottom))
        pairs = extreme_eigenpairs(product, size, most_products, seed)
        bottom = pairs.vectors[0].astype(float)
        few = examples[:: max(1, len(examples) // ROUNDING_EXAMPLES)]
        both = [
            hessian_product(condition, weights, data, few, device, dtype)(bottom)
            for dtype in (torch.float32, torch.float64)
        ]
        found.append(_of_sample(pairs, len(examples), float(np.linalg.norm(both[0] - both[1]))))
    return conclude(*found, transferred)


def conclude(first: SampleCurvature, second: SampleCurvature, transferred: float) -> Curvature:
    """Say what the two samples show together; see `Curvature`."""
    spread = abs(first.smallest - second.smallest)
    errors = [s.smallest_residual + s.rounding + spread for s in (first, second)]
    smallest = [first.smallest, second.smallest]
    beyond = all(value + error < 0 for value, error in zip(smallest, errors, strict=True))
    negative = beyond and transferred < 0
    largest = (first.largest + second.largest) / 2
    mean = sum(smallest) / 2
    bound = max(abs(value) + error for value, error in zip(smallest, errors, strict=True))
    if negative:
        statement = f"The smallest eigenvalue is {mean:.2g}, negative beyond its errors."
    else:
        statement = f"The smallest eigenvalue, {mean:.2g}, is not distinguishable from 0 "
        statement += (
            f"(along its direction the other sample's curvature is {transferred:.2g})."
            if beyond
            else f"(errors {max(errors):.2g})."
        )
    return Curvature(
        first=first,
        second=second,
        spread=spread,
        transferred=transferred,
        negative=negative,
        anisotropy=largest / abs(mean) if negative else None,
        anisotropy_at_least=largest / max(bound, 1e-30),
        statement=statement,
    )


def _of_sample(pairs: Eigenpairs, examples: int, rounding: float) -> SampleCurvature:
    smallest, largest = pairs.values[0], pairs.values[-1]
    return SampleCurvature(
        examples=examples,
        products=pairs.products,
        largest=largest,
        largest_residual=pairs.residuals[-1],
        largest_converged=pairs.residuals[-1] <= LARGEST_TOLERANCE * abs(largest),
        smallest=smallest,
        smallest_residual=pairs.residuals[0],
        smallest_converged=pairs.residuals[0] <= SMALLEST_TOLERANCE * abs(smallest),
        rounding=rounding,
    )


def _converged(values: np.ndarray, residuals: np.ndarray, n_largest: int) -> bool:
    top = slice(-n_largest, None)
    return bool(
        (residuals[top] <= LARGEST_TOLERANCE * np.abs(values[top])).all()
        and residuals[0] <= SMALLEST_TOLERANCE * abs(values[0])
        and math.isfinite(values[0])
    )


def _unflatten(vector: torch.Tensor, like: list[torch.Tensor]) -> list[torch.Tensor]:
    parts = vector.split([parameter.numel() for parameter in like])
    return [part.view_as(parameter) for part, parameter in zip(parts, like, strict=True)]
