"""How straight a network's weights move (section 4 of the paper, Figure 3b).

A *displacement* is the difference of the weights between two checkpoints. The paper reads a cosine
between consecutive displacements near 0 as a random walk and a large one as directed movement. A
random walk under AdamW has a cosine of its own, which `independent_cosine` gives.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from mbc.checkpoints import PHASES, phase_of
from mbc.model import Weights
from mbc.transitions import Moment

WHOLE = "whole"
COMPONENTS = {
    "embedding": (".tok_embed.", ".pos."),
    "attention": (".attn.",),
    "mlp": (".mlp.",),
    "unembedding": (".head.",),
}
"""Components of a transformer, and what the names of their weights, behind a dot, contain. Layer
norms are part of the whole network only."""

MOMENTUM = 0.9
"""beta1 of AdamW in `mbc.training`, PyTorch's default."""


@dataclass(frozen=True)
class Displacement:
    """How the weights moved between two checkpoints.

    Attributes:
        start: step of the first checkpoint.
        end: step of the second.
        norms: Euclidean norm of the displacement by component and of the whole network.
        cosines: cosine between it and the displacement before, which ended at ``start``; empty for
            the first one, and without components that did not move.
    """

    start: int
    end: int
    norms: dict[str, float]
    cosines: dict[str, float]


@dataclass(frozen=True)
class RandomWalk:
    """The cosine that two consecutive displacements would have without any direction.

    Attributes:
        fresh: if each step's gradient is drawn anew.
        permuted: if each epoch shows every example once, so that its gradients sum to 0; None if
            an epoch is one batch.
    """

    fresh: float
    permuted: float | None


@dataclass(frozen=True)
class PhaseCosines:
    """Cosines between consecutive displacements in one phase of a run.

    Attributes:
        turns: pairs of displacements that meet in the phase.
        mean: mean cosine by component and of the whole network.
        lowest: lowest cosine.
        highest: highest cosine.
        fresh: mean of `RandomWalk.fresh`.
        permuted: mean of `RandomWalk.permuted`; None where that is.
    """

    turns: int
    mean: dict[str, float]
    lowest: dict[str, float]
    highest: dict[str, float]
    fresh: float
    permuted: float | None


def component_of(name: str) -> str | None:
    """Return the component of a transformer that a weight belongs to; None for layer norms.

    Raises:
        ValueError: if it is no weight of a transformer.
    """
    for component, parts in COMPONENTS.items():
        if any(part in f".{name}" for part in parts):
            return component
    if ".ln" in f".{name}":
        return None
    raise ValueError(f"{name} is not a weight of a transformer.")


def parameter_counts(weights: Weights) -> dict[str, int]:
    """Return the number of parameters of the whole network and of each component."""
    counts = dict.fromkeys((WHOLE, *COMPONENTS), 0)
    for name, weight in weights.items():
        for part in _parts(name):
            counts[part] += weight.numel()
    return counts


def equidistant(steps: list[int], length: int) -> list[int]:
    """Return the checkpoints ``length`` steps apart from the first one on, up to the first gap.

    Args:
        steps: steps of the checkpoints, rising; not empty.
        length: of a displacement in steps.
    """
    kept, chosen = set(steps), [steps[0]]
    while chosen[-1] + length in kept:
        chosen.append(chosen[-1] + length)
    return chosen


def displacements(weights_at: Callable[[int], Weights], steps: list[int]) -> Iterator[Displacement]:
    """Yield the displacements between consecutive checkpoints; each is read once.

    Two checkpoints and two displacements are in memory at once. Products are summed in float64.

    Args:
        weights_at: returns the weights at a step, all on one device.
        steps: of the checkpoints, rising.
    """
    earlier, before = None, None
    for start, end in pairwise(steps):
        earlier = weights_at(start) if earlier is None else earlier
        later = weights_at(end)
        moved = {name: later[name].double() - earlier[name].double() for name in later}
        norms = {part: math.sqrt(square) for part, square in _products(moved, moved).items()}
        cosines = {}
        if before is not None:
            old, old_norms = before
            for part, product in _products(old, moved).items():
                scale = old_norms[part] * norms[part]
                if scale > 0:
                    cosines[part] = product / scale
        yield Displacement(start, end, norms, cosines)
        earlier, before = later, (moved, norms)


def random_walk(
    turn: int, length: int, *, lr: float, weight_decay: float, batches_per_epoch: int
) -> RandomWalk:
    """Return what the cosine of two consecutive displacements would be if gradients were noise.

    See `independent_cosine`. With ``permuted`` noise the gradients of an epoch cancel as they
    would if the weights stood still. They move, so the truth lies between the two.

    Args:
        turn: step at which the displacements meet.
        length: of each in steps.
        lr: learning rate.
        weight_decay: of AdamW.
        batches_per_epoch: steps in which every example is shown once.
    """
    decay = lr * weight_decay
    fresh = independent_cosine(turn, length, decay=decay)
    if batches_per_epoch == 1:
        return RandomWalk(fresh, None)
    permuted = independent_cosine(turn, length, decay=decay, batches_per_epoch=batches_per_epoch)
    return RandomWalk(fresh, permuted)


def independent_cosine(
    turn: int,
    length: int,
    *,
    momentum: float = MOMENTUM,
    decay: float = 0.0,
    batches_per_epoch: int | None = None,
) -> float:
    """Return the expected cosine of two consecutive displacements of independent AdamW steps.

    Of many independent weights of equal size it is the ratio of covariance to standard deviations.
    With gradients g_t, t = 1, 2, ..., white and of one variance, and AdamW's second moment constant
    (its memory of 1000 steps is longer than a displacement), weights move by

        w_t = (1 - decay) w_{t-1} - c m_t,    m_t = momentum m_{t-1} + (1 - momentum) g_t.

    A gradient has therefore moved the weights, j steps after its own, by -c times

        h_j = (1 - momentum) sum_{i=0..j} (1 - decay)^(j-i) momentum^i,    h_j = 0 for j < 0,

    and g_t counts in the displacement before the turn s with a_t = h_{s-t} - h_{s-length-t}, in
    that behind it with b_t = h_{s+length-t} - h_{s-t}. The cosine is
    sum(a b) / sqrt(sum(a a) sum(b b)). Steps share gradients across the turn through the momentum,
    so it is not 0: without decay, and far from the first step, with M for momentum,

        M (1 - M^length)^2 / (length (1 - M^2) - 2 M (1 - M^length)),

    which is 0.025 at 200 steps and 0.31 at 20. Decay of what noise has added pulls it down by about
    decay * length / 2, 0.001 at 200 steps.

    Where each epoch shows every example once, in n batches put together anew, its gradients sum to
    0 (if the weights stand still), so that two of one epoch are correlated by -1 / (n - 1), and two
    of different epochs are not. Every sum(a b) then becomes
    sum(a b) - sum over epochs of (sum of a) (sum of b) / n, up to a common factor.
    Displacements that end inside an epoch are then anticorrelated.

    Left out: the correction of the first steps' momentum (it is 0 within 1% after 44 steps), the
    pull of the decay on the initial weights (a cosine of (decay * length * |w| / |displacement|)^2,
    about 0.0001 here), a last batch that is shorter, and schedules of the learning rate.

    Args:
        turn: step at which the two displacements meet, at least ``length``.
        length: steps of each displacement.
        momentum: beta1 of AdamW.
        decay: learning rate times weight decay.
        batches_per_epoch: of permuted data, at least 2; None for fresh draws.
    """
    t = np.arange(1, turn + length + 1)
    after = [_response(stop - t, momentum, decay) for stop in (turn - length, turn, turn + length)]
    a, b = after[1] - after[0], after[2] - after[1]

    def product(x: np.ndarray, y: np.ndarray) -> float:
        total = x @ y
        if batches_per_epoch is not None:
            firsts = np.arange(0, len(t), batches_per_epoch)
            by_epoch = np.add.reduceat(x, firsts) @ np.add.reduceat(y, firsts)
            total -= by_epoch / batches_per_epoch
        return float(total)

    return product(a, b) / math.sqrt(product(a, a) * product(b, b))


def sampling_error(cosine: float, n_parameters: int) -> float:
    """Return the standard deviation of the cosine of ``n_parameters`` independent weights.

    A lower bound for a network, whose weights do not move independently.

    Args:
        cosine: the expected one.
        n_parameters: at least 1.
    """
    return (1 - cosine**2) / math.sqrt(n_parameters)


def phase_cosines(
    found: list[Displacement], walks: dict[int, RandomWalk], tau: Moment
) -> dict[str, PhaseCosines]:
    """Return the cosines by phase of the step at which two displacements meet.

    Args:
        found: displacements of a run.
        walks: random walks by that step.
        tau: waiting time of the run; of a censored run its last step.

    Returns:
        For each phase that has cosines, in the order of `mbc.checkpoints.PHASES`.
    """
    result = {}
    for phase in PHASES:
        inside = [d for d in found if d.cosines and phase_of(d.start / tau.step) == phase]
        if not inside:
            continue
        values = {
            part: [d.cosines[part] for d in inside if part in d.cosines]
            for part in (WHOLE, *COMPONENTS)
        }
        values = {part: cosines for part, cosines in values.items() if cosines}
        permuted = [walks[d.start].permuted for d in inside]
        result[phase] = PhaseCosines(
            turns=len(inside),
            mean={part: float(np.mean(cosines)) for part, cosines in values.items()},
            lowest={part: min(cosines) for part, cosines in values.items()},
            highest={part: max(cosines) for part, cosines in values.items()},
            fresh=float(np.mean([walks[d.start].fresh for d in inside])),
            permuted=None if None in permuted else float(np.mean(permuted)),
        )
    return result


def _parts(name: str) -> list[str]:
    component = component_of(name)
    return [WHOLE] if component is None else [WHOLE, component]


def _products(one: Weights, other: Weights) -> dict[str, float]:
    """Return the inner products of two displacements, by component and of the whole."""
    products = dict.fromkeys((WHOLE, *COMPONENTS), 0.0)
    for name, moved in one.items():
        product = torch.dot(moved.flatten(), other[name].flatten()).item()
        for part in _parts(name):
            products[part] += product
    return products


def _response(steps_after: np.ndarray, momentum: float, decay: float) -> np.ndarray:
    """Return h of `independent_cosine`: the geometric sum in closed form."""
    j = np.maximum(steps_after, -1) + 1
    kept = 1 - decay
    if kept == momentum:
        return (1 - momentum) * j * momentum ** (j - 1.0)
    return (1 - momentum) * (kept**j - momentum**j) / (kept - momentum)
