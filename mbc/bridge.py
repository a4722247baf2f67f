"""The network as a TransformerLens model, which offers hooks and caches for analysis."""

import math
from typing import Literal

import torch
from transformer_lens.config import TransformerBridgeConfig
from transformer_lens.model_bridge import TransformerBridge

from mbc.model import LAYER_NORM_EPSILON, Weights
from mbc.task import VOCABULARY_SIZE

Initialisation = Literal["paper", "scaled"]


def build_model(
    *,
    n_layers: int,
    d_model: int,
    n_heads: int,
    d_mlp: int,
    n_positions: int,
    initialisation: Initialisation,
    seed: int,
    device: torch.device,
) -> TransformerBridge:
    """Return a freshly initialised decoder with learned positions and untied unembedding.

    ``paper``: every matrix normal with standard deviation 0.8 / sqrt(d_model), as TransformerLens
    drew them when the paper was written. ``scaled``: TransformerLens 4 as it is, which divides the
    output projections of attention and MLP by sqrt(2 * n_layers). Biases are 0 in both. The global
    random generator is left alone.
    """
    config = TransformerBridgeConfig(
        n_layers=n_layers,
        d_model=d_model,
        n_heads=n_heads,
        d_head=d_model // n_heads,
        d_mlp=d_mlp,
        n_ctx=n_positions,
        d_vocab=VOCABULARY_SIZE,
        act_fn="gelu",
        eps=LAYER_NORM_EPSILON,
        seed=seed,
    )
    bridge = TransformerBridge.boot_native(config, device=device)
    if initialisation == "paper":
        with torch.no_grad():
            for name, weight in named_weights(bridge).items():
                if name.endswith(("attn.o.weight", "mlp.fc_out.weight")):
                    weight.mul_(math.sqrt(2 * n_layers))
    return bridge


def named_weights(bridge: TransformerBridge) -> Weights:
    """Return the model's own parameters, not copies, by readable name (``layers.0.attn.q.weight``).

    `mbc.model.tree_logits` takes such a dictionary, `torch.optim` its values.
    """
    return {
        name.replace("._original_component", ""): parameter
        for name, parameter in bridge.original_model.named_parameters()
    }
