"""Shared pieces: a small condition, and trained runs on it."""

from pathlib import Path

import pandas as pd
import pytest
import torch

from mbc.conditions import BASE_KEYS, NETWORK_KEYS, Condition
from mbc.initialisation import initial_weights
from mbc.task import draw_map, sequences
from mbc.training import start, train
from stages.files import read_yaml

ROOT = Path(__file__).parents[1]
CPU = torch.device("cpu")
torch.set_num_threads(1)  # networks this small are slower with more
TINY = {"n_layers": 1, "d_model": 32, "n_heads": 2, "d_mlp": 64, "batch_size": 32, "lr": 0.01}


@pytest.fixture(scope="session")
def params():
    return read_yaml(ROOT / "params.yaml")


@pytest.fixture(scope="session")
def make_condition(params):
    """Return a function that makes a small condition with changes."""

    def make(**changes):
        base = {key: params[key] for key in BASE_KEYS}
        small = {"k": 4, "n_b": 20, "max_steps": 600}
        return Condition(**{**base, **TINY, **small, **changes})

    return make


def initial(condition, seed=0):
    """Return the initial weights of a run."""
    return initial_weights(**condition.model_dump(include=set(NETWORK_KEYS)), seed=seed)


@pytest.fixture(scope="session")
def run():
    """Return a function that trains a condition to its end: history and final state."""

    def run_condition(condition, seed=0):
        data = sequences(
            draw_map(condition.k, condition.n_b, condition.fibre, seed), condition.direction
        )
        state = start(condition, initial(condition, seed), CPU)
        rows = [row.flat() for row in train(condition, data, seed, state, CPU)]
        return pd.DataFrame(rows), state

    return run_condition
