"""What is trained: weights by name, and how they turn a tree of tokens into logits."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mbc.conditions import Condition
from mbc.linear import linear_logits
from mbc.model import EditHeads, Segment, Weights, tree_logits
from mbc.task import layout


@dataclass(frozen=True)
class Network:
    """A trainable network.

    Attributes:
        weights: parameters by name, in float32.
        logits: function from a tree of segments to the logits at the asked positions of each
            segment, [rows, siblings, asked, vocabulary].
    """

    weights: Weights
    logits: Callable[[list[Segment]], list[Tensor]]


def network_of(
    condition: Condition, weights: Weights, edit_heads: EditHeads | None = None
) -> Network:
    """Return the network that a condition makes of weights.

    With precision ``bfloat16`` the matrices of attention and MLP (of both layers, if the network is
    linear) are rounded once for each call, and their products taken in bfloat16; attention,
    normalisation, the residual stream and the unembedding stay in float32, and so do the weights
    that are trained.

    Args:
        condition: what the network is.
        weights: its parameters, as of `mbc.initialisation.initial_weights`.
        edit_heads: of a transformer; see `mbc.model.tree_logits`.
    """

    def rounded() -> Weights:
        if condition.precision == "float32":
            return weights
        return {
            name: weight.bfloat16() if _is_rounded(name) else weight
            for name, weight in weights.items()
        }

    if condition.network == "linear":
        start = layout(condition.direction, condition.fibre).answer_start
        return Network(weights, lambda tree: linear_logits(rounded(), tree, start))
    n_heads = condition.n_heads
    return Network(weights, lambda tree: tree_logits(rounded(), tree, n_heads, edit_heads))


def leaves(weights: Weights, device: torch.device, dtype: torch.dtype = torch.float32) -> Weights:
    """Return copies of weights by which a loss can be differentiated."""
    return {
        name: weight.detach().to(device, dtype, copy=True).requires_grad_()
        for name, weight in weights.items()
    }


def _is_rounded(name: str) -> bool:
    return any(part in name for part in (".attn.", ".mlp.", "first.", "second."))
