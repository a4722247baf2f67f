"""What is trained: weights by name, and how they turn a tree of tokens into logits."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mbc.conditions import Condition
from mbc.linear import build_linear, linear_logits
from mbc.model import Segment, Weights, build_model, named_weights, tree_logits
from mbc.task import Sequences


@dataclass(frozen=True)
class Network:
    """A trainable network.

    Attributes:
        weights: parameters by name.
        logits: function from a tree of segments to the logits at the asked positions of each
            segment, [rows, siblings, asked, vocabulary].
    """

    weights: Weights
    logits: Callable[[list[Segment]], list[Tensor]]


def build_network(
    condition: Condition, data: Sequences, seed: int, device: torch.device
) -> Network:
    """Return a condition's network with its initial weights, which the seed alone decides."""
    if condition.network == "linear":
        weights = build_linear(
            n_inputs=data.answer_start - 3,
            n_answers=data.n_target,
            d_model=condition.d_model,
            d_hidden=condition.d_mlp,
            seed=seed,
            device=device,
        )
        return Network(weights, lambda tree: linear_logits(weights, tree, data.answer_start))
    bridge = build_model(
        n_layers=condition.n_layers,
        d_model=condition.d_model,
        n_heads=condition.n_heads,
        d_mlp=condition.d_mlp,
        n_positions=data.tokens.shape[1] - 1,
        initialisation=condition.initialisation,
        seed=seed,
        device=device,
    )
    weights = named_weights(bridge)
    return Network(weights, lambda tree: tree_logits(weights, tree, condition.n_heads))
