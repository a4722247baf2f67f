"""A fast forward pass of the transformer, over the parameters of `mbc.bridge.build_model`.

A prefix that several sequences share is computed only once, and only what the answer positions
need. TransformerLens, which takes seconds to import, is not needed here.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from mbc.products import linear

Weights = dict[str, Tensor]
EditHeads = Callable[[int, Tensor, Tensor], Tensor]
"""Function of layer, the heads' outputs [tokens, heads, d_head] and the tokens' positions [tokens]
that returns the outputs to go on with; see `tree_logits`."""

LAYER_NORM_EPSILON = 1e-5


@dataclass(frozen=True)
class Segment:
    """A stretch of tokens, for many sequences at once, that continues rows of an earlier segment.

    Attributes:
        tokens: [rows, siblings, length]; the siblings of a row continue the same prefix and do not
            see each other.
        parent: index of the segment that this one continues; None for a beginning.
        parent_rows: row of the parent (rows and siblings counted together) that each row
            continues, [rows]; None for a beginning.
        asked: number of positions at the end of each sibling whose next token is asked for.
    """

    tokens: Tensor
    parent: int | None = None
    parent_rows: Tensor | None = None
    asked: int = 0


def tree_logits(
    weights: Weights, tree: list[Segment], n_heads: int, edit_heads: EditHeads | None = None
) -> list[Tensor]:
    """Return the logits at the asked positions of every segment of a tree of shared prefixes.

    The same numbers as the whole model's on each sequence from root to leaf, up to rounding. Each
    token of the tree passes through the network once, however many sequences continue it; the last
    layer's queries and MLP and the unembedding are computed at the asked positions only.

    Args:
        weights: of `mbc.bridge.named_weights`; where the matrices of attention and MLP are
            bfloat16, products are taken in it, all else in float32.
        tree: segments, each behind the one that it continues.
        n_heads: attention heads in each layer.
        edit_heads: changes what the heads put out (TransformerLens' ``hook_z``); in the last layer
            it sees the asked positions only.

    Returns:
        For each segment [rows, siblings, asked, vocabulary].
    """
    positions = _positions(tree)
    tokens = torch.cat([segment.tokens.flatten() for segment in tree])
    hidden = F.embedding(tokens, weights["tok_embed.weight"])
    hidden = hidden + F.embedding(positions, weights["pos.weight"])
    n_layers = sum(name.endswith("attn.q.weight") for name in weights)
    for layer in range(n_layers):
        name = f"layers.{layer}"
        last = layer == n_layers - 1
        normed = _layer_norm(weights, f"{name}.ln1", hidden)
        keys = _linear(weights, f"{name}.attn.k", normed).to(hidden.dtype)
        values = _linear(weights, f"{name}.attn.v", normed).to(hidden.dtype)
        if last:
            hidden, normed = _asked(hidden, tree), _asked(normed, tree)
        queries = _linear(weights, f"{name}.attn.q", normed).to(hidden.dtype)
        mixed = _attend(queries, keys, values, tree, n_heads, only_asked=last)
        if edit_heads is not None:
            places = _asked(positions, tree) if last else positions
            mixed = edit_heads(layer, mixed.unflatten(-1, (n_heads, -1)), places).flatten(1)
        hidden = hidden + _linear(weights, f"{name}.attn.o", mixed)
        inner = _linear(weights, f"{name}.mlp.fc_in", _layer_norm(weights, f"{name}.ln2", hidden))
        hidden = hidden + _linear(weights, f"{name}.mlp.fc_out", F.gelu(inner))
    logits = linear(_layer_norm(weights, "ln_out", hidden), weights["head.weight"])
    return _split(logits, [(*segment.tokens.shape[:2], segment.asked) for segment in tree])


def _positions(tree: list[Segment]) -> Tensor:
    """Return the positions of all tokens, segments one below the other, [tokens]."""
    firsts: list[int] = []
    parts = []
    for segment in tree:
        before, length = segment.parent, segment.tokens.shape[2]
        firsts.append(0 if before is None else firsts[before] + tree[before].tokens.shape[2])
        own = torch.arange(firsts[-1], firsts[-1] + length, device=segment.tokens.device)
        parts.append(own.repeat(segment.tokens.shape[0] * segment.tokens.shape[1]))
    return torch.cat(parts)


def _layer_norm(weights: Weights, name: str, hidden: Tensor) -> Tensor:
    weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return F.layer_norm(hidden, weight.shape, weight, bias, LAYER_NORM_EPSILON)


def _linear(weights: Weights, name: str, hidden: Tensor) -> Tensor:
    weight = weights[f"{name}.weight"]
    return linear(hidden.to(weight.dtype), weight, weights[f"{name}.bias"])


def _split(flat: Tensor, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    """Cut [tokens, ...] into one [*shape, ...] for each segment."""
    parts = flat.split([math.prod(shape) for shape in shapes])
    return [part.unflatten(0, shape) for part, shape in zip(parts, shapes, strict=True)]


def _asked(flat: Tensor, tree: list[Segment]) -> Tensor:
    parts = _split(flat, [segment.tokens.shape for segment in tree])
    return torch.cat(
        [
            part[:, :, part.shape[2] - segment.asked :].flatten(0, 2)
            for part, segment in zip(parts, tree, strict=True)
        ]
    )


def _attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    tree: list[Segment],
    n_heads: int,
    *,
    only_asked: bool,
) -> Tensor:
    """Return the heads' mixed values, [tokens, d_model], tokens as in ``queries``."""
    shapes = [tuple(segment.tokens.shape) for segment in tree]
    asked_shapes = [(*shape[:2], s.asked) for shape, s in zip(shapes, tree, strict=True)]
    split_queries = _split(queries, asked_shapes if only_asked else shapes)
    paths: list[tuple[Tensor, Tensor] | None] = []
    mixed = []
    has_children = {segment.parent for segment in tree}
    for index, (segment, q, k, v) in enumerate(
        zip(tree, split_queries, _split(keys, shapes), _split(values, shapes), strict=True)
    ):
        q, k, v = (part.unflatten(-1, (n_heads, -1)).permute(0, 3, 1, 2, 4) for part in (q, k, v))
        past = None
        if segment.parent is not None:
            # index_select, not indexing: its backward pass adds in a fixed order on every CPU
            past = tuple(
                part.index_select(0, segment.parent_rows) for part in paths[segment.parent]
            )
        mixed.append(_attend_segment(q, k, v, past))
        paths.append(_path(k, v, past) if index in has_children else None)
    return torch.cat(mixed)


def _attend_segment(q: Tensor, k: Tensor, v: Tensor, past: tuple[Tensor, Tensor] | None) -> Tensor:
    """Attend from one segment to its past and to itself.

    Args:
        q: [rows, heads, siblings, queried, d_head], the last positions of the segment.
        k: keys of the segment, [rows, heads, siblings, length, d_head].
        v: values of the segment, shaped like ``k``.
        past: keys and values of the prefix, [rows, heads, prefix, d_head] each.

    Returns:
        [rows * siblings * queried, heads * d_head].
    """
    siblings, queried, d_head = q.shape[2:]
    length = k.shape[3]
    forbidden = torch.full((length, length), -math.inf, device=q.device).triu(1)
    forbidden = forbidden[length - queried :]
    q = q / math.sqrt(d_head)
    if past is not None and siblings == 1:
        k, v = (
            torch.cat([before[:, :, None], own], dim=3)
            for before, own in zip(past, (k, v), strict=True)
        )
        forbidden = F.pad(forbidden, (k.shape[3] - length, 0))
        past = None
    scores = q @ k.transpose(-2, -1) + forbidden
    if past is None:
        mixed = scores.softmax(-1) @ v
    else:
        past_k, past_v = past
        n_past = past_k.shape[2]
        to_past = (q.flatten(2, 3) @ past_k.transpose(-2, -1)).unflatten(2, (siblings, queried))
        pattern = torch.cat([to_past, scores], dim=-1).softmax(-1)
        from_past = (pattern[..., :n_past].flatten(2, 3) @ past_v).unflatten(2, (siblings, queried))
        mixed = from_past + pattern[..., n_past:] @ v
    return mixed.permute(0, 2, 3, 1, 4).flatten(0, 2).flatten(1)


def _path(k: Tensor, v: Tensor, past: tuple[Tensor, Tensor] | None) -> tuple[Tensor, Tensor]:
    """Return keys and values from the beginning to this segment, [rows * siblings, heads, ...]."""
    siblings = k.shape[2]
    own = [part.transpose(1, 2).flatten(0, 1) for part in (k, v)]
    if past is None:
        return own[0], own[1]
    before = [part.repeat_interleave(siblings, dim=0) if siblings > 1 else part for part in past]
    return torch.cat([before[0], own[0]], dim=2), torch.cat([before[1], own[1]], dim=2)
