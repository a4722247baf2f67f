"""Where attention heads look, by TransformerLens' hooks on a network with given weights."""

from dataclasses import dataclass

import torch
from torch import Tensor
from transformer_lens.model_bridge import TransformerBridge

from mbc.bridge import build_model, named_weights
from mbc.conditions import Condition
from mbc.model import Weights
from mbc.task import SELECTOR_LENGTH, Sequences, generator, layout


@dataclass(frozen=True)
class HeadAttention:
    """How much one head looks at the selector from where the answer is predicted.

    Attributes:
        layer: its layer, from 0.
        head: its number in the layer, from 0.
        first: attention weight on the two characters of z together, in [0, 1], from the position
            that predicts the first target character.
        mean: the same, averaged over all positions that predict the answer.
        by_position: the same from each of them; the last one predicts EOS.
    """

    layer: int
    head: int
    first: float
    mean: float
    by_position: tuple[float, ...]


@dataclass(frozen=True)
class AttentionToZ:
    """Attention of all heads to z, averaged over a sample of examples.

    Attributes:
        examples: size of the sample.
        uniform_first: `HeadAttention.first` of a head that looks at all it can see alike.
        uniform_mean: its `HeadAttention.mean`.
        heads: all heads of the network, layer by layer.
    """

    examples: int
    uniform_first: float
    uniform_mean: float
    heads: tuple[HeadAttention, ...]


def bridge_with(condition: Condition, weights: Weights) -> TransformerBridge:
    """Return a condition's network as a TransformerLens model with given weights, in float32.

    Its hooks and caches are those of `TransformerBridge`: ``run_with_cache``, ``run_with_hooks``,
    ``blocks.0.attn.hook_pattern`` and so on. The weights are copied, and lie where they lay. With
    precision ``bfloat16`` they are not rounded, so the logits agree with `network_of` up to that.

    Raises:
        ValueError: if the condition is no transformer, or the weights are another network's.
    """
    if condition.network != "transformer":
        raise ValueError(f"network is {condition.network!r}: TransformerLens has no such model.")
    bridge = build_model(
        n_layers=condition.n_layers,
        d_model=condition.d_model,
        n_heads=condition.n_heads,
        d_mlp=condition.d_mlp,
        n_positions=layout(condition.direction, condition.fibre).n_positions,
        initialisation=condition.initialisation,
        seed=0,
        device=next(iter(weights.values())).device,
    )
    own = named_weights(bridge)
    wrong = [
        name
        for name in sorted(own.keys() | weights.keys())
        if name not in own or name not in weights or own[name].shape != weights[name].shape
    ]
    if wrong:
        raise ValueError(f"The weights are not this condition's: {wrong[0]} differs.")
    with torch.no_grad():
        for name, weight in own.items():
            weight.copy_(weights[name])
    return bridge


def draw_sequences(data: Sequences, most: int, seed: int) -> Tensor:
    """Draw different examples as whole sequences: ``most`` of them, or all if there are fewer.

    Returns:
        Tokens without the final EOS, [examples, positions].
    """
    size = min(most, len(data.tokens))
    rng = generator(seed, "attention sample")
    return torch.from_numpy(data.tokens[rng.choice(len(data.tokens), size, replace=False), :-1])


@torch.no_grad()
def attention_to_z(condition: Condition, weights: Weights, tokens: Tensor) -> AttentionToZ:
    """Measure how much each head looks at z from the positions that predict the answer.

    High attention shows where a head looks, not that the network uses what it sees there: see
    `mbc.heads` for that.

    Args:
        condition: what the network is.
        weights: its parameters.
        tokens: whole sequences of examples, [examples, positions], where the weights lie.

    Raises:
        ValueError: if the condition is no transformer, or the weights are another network's.
    """
    places = layout(condition.direction, condition.fibre)
    start = places.answer_start - 1  # the SEP behind z predicts the first character
    selector = slice(start - SELECTOR_LENGTH, start)
    names = [f"blocks.{layer}.attn.hook_pattern" for layer in range(condition.n_layers)]
    _, cache = bridge_with(condition, weights).run_with_cache(tokens, names_filter=names)
    heads = []
    for layer, name in enumerate(names):
        # [examples, heads, queries, keys] to [heads, answer positions]
        to_z = cache[name][:, :, start:, selector].double().sum(-1).mean(0)
        for head, row in enumerate(to_z.tolist()):
            heads.append(HeadAttention(layer, head, row[0], sum(row) / len(row), tuple(row)))
    uniform = [SELECTOR_LENGTH / (position + 1) for position in range(start, places.n_positions)]
    return AttentionToZ(len(tokens), uniform[0], sum(uniform) / len(uniform), tuple(heads))
