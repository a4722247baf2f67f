import numpy as np
import pytest
import torch

from mbc.evaluation import draw_sample, evaluate
from mbc.linear import build_linear, linear_logits
from mbc.network import Network
from mbc.task import draw_map, sequences
from mbc.training import training_tree

CPU = torch.device("cpu")


@pytest.fixture
def data():
    return sequences(draw_map(4, 8, "distinct", seed=0), "backward")


@pytest.fixture
def weights(data):
    return build_linear(n_inputs=8, n_answers=5, d_model=6, d_hidden=10, seed=0)


def test_logits_are_two_matrices_times_the_concatenated_embeddings(data, weights):
    batch = np.arange(32)
    tree, _ = training_tree(data, batch, batch, CPU)
    logits = linear_logits(weights, tree, data.answer_start)[-1][:, 0]
    w = {name: weight.detach().double().numpy() for name, weight in weights.items()}
    inputs = np.hstack([data.tokens[:, 1:7], data.tokens[:, 8:10]])
    hidden = w["embed.weight"][inputs].reshape(32, -1) @ w["first.weight"].T + w["first.bias"]
    expected = (hidden @ w["second.weight"].T + w["second.bias"]).reshape(32, 5, 40)
    assert np.allclose(logits.detach().numpy(), expected, atol=1e-5)


def test_evaluation_scores_every_candidate_by_the_same_logits(data, weights):
    network = Network(weights, lambda tree: linear_logits(weights, tree, data.answer_start))
    sample = draw_sample(data, 32, 0, CPU)
    result = evaluate(network, sample)
    *_, first, behind, _ = network.logits(sample.tree)
    assert behind.shape == (32, 4, 4, 40)
    assert torch.equal(behind[:, 0], behind[:, 3])
    assert first.shape == (96, 1, 1, 40)
    assert 0 < result.candidate_loss < 10


def test_the_seed_decides_the_weights(weights):
    again, other = (
        build_linear(n_inputs=8, n_answers=5, d_model=6, d_hidden=10, seed=s) for s in (0, 1)
    )
    assert all(torch.equal(weights[name], again[name]) for name in weights)
    assert not torch.equal(weights["embed.weight"], other["embed.weight"])
