"""The weights that a run starts from."""

from typing import Literal

import torch

from mbc.bridge import Initialisation, build_model, named_weights
from mbc.linear import build_linear
from mbc.model import Weights
from mbc.task import Direction, Fibre, layout


def initial_weights(
    *,
    direction: Direction,
    fibre: Fibre,
    network: Literal["transformer", "linear"],
    n_layers: int,
    d_model: int,
    n_heads: int,
    d_mlp: int,
    initialisation: Initialisation,
    seed: int,
) -> Weights:
    """Return initial weights, which `mbc.conditions.NETWORK_KEYS` and the seed decide."""
    places = layout(direction, fibre)
    if network == "linear":
        return build_linear(
            n_inputs=places.answer_start - 3,
            n_answers=places.n_target,
            d_model=d_model,
            d_hidden=d_mlp,
            seed=seed,
        )
    bridge = build_model(
        n_layers=n_layers,
        d_model=d_model,
        n_heads=n_heads,
        d_mlp=d_mlp,
        n_positions=places.n_positions,
        initialisation=initialisation,
        seed=seed,
        device=torch.device("cpu"),
    )
    return {name: weight.detach() for name, weight in named_weights(bridge).items()}
