import math

import numpy as np
import pytest
import torch

from mbc.bridge import build_model, named_weights
from mbc.evaluation import draw_sample, evaluate, sample_size
from mbc.model import tree_logits
from mbc.network import Network
from mbc.task import candidates, draw_map, generator, sequences, shuffle_without_fixed

CPU = torch.device("cpu")


def build(length=15, seed=0):
    bridge = build_model(
        n_layers=2,
        d_model=32,
        n_heads=2,
        d_mlp=64,
        n_positions=length,
        initialisation="paper",
        seed=seed,
        device=CPU,
    )
    with torch.no_grad():
        for weight in named_weights(bridge).values():
            weight.mul_(2)  # far from chance, so that every measurement shows
    return bridge


def network(bridge):
    weights = named_weights(bridge)
    return Network(weights, lambda tree: tree_logits(weights, tree, n_heads=2))


def dataset(k=5, n_b=12, fibre="distinct", direction="backward"):
    return sequences(draw_map(k, n_b, fibre, seed=0), direction)


def answer_losses(bridge, tokens, n_target):
    logits = bridge(torch.from_numpy(tokens[:, :-1]), return_type="logits")[:, -n_target:]
    log_p = logits.double().log_softmax(-1).detach().numpy()
    return -np.take_along_axis(log_p, tokens[:, -n_target:, None], axis=2)[..., 0], np.exp(log_p)


@pytest.mark.parametrize(
    ("fibre", "direction"),
    [
        ("distinct", "backward"),
        ("structured", "backward"),
        ("free", "backward"),
        ("free", "forward"),
    ],
)
def test_measurements_equal_those_computed_one_sequence_at_a_time(fibre, direction):
    data = dataset(fibre=fibre, direction=direction)
    length = data.tokens.shape[1]
    bridge, n, seed = build(length - 1), 20, 3
    measured = evaluate(network(bridge), draw_sample(data, n, seed, CPU))

    rng = generator(seed, "evaluation sample")
    examples = rng.choice(60, size=n, replace=False)
    tokens, start = data.tokens[examples], data.answer_start
    own, probabilities = answer_losses(bridge, tokens, data.n_target)
    options = candidates(data, examples, seed)
    strings = np.stack(
        [
            np.hstack([tokens[:, :start], data.tokens[options[:, j], start:]])
            for j in range(options.shape[1])
        ]
    )
    scores = np.stack([-answer_losses(bridge, s, data.n_target)[0].sum(1) for s in strings])
    losses = np.log(np.exp(scores).sum(0)) - scores[0]
    assert measured.candidate_loss == pytest.approx(losses.mean(), rel=1e-5)
    assert measured.candidate_loss_error == pytest.approx(losses.std() / math.sqrt(n), rel=1e-5)
    assert measured.candidate_accuracy == pytest.approx((scores.argmax(0) == 0).mean())
    assert measured.character_losses == pytest.approx(tuple(own.mean(0)), rel=1e-5)
    assert measured.joint_loss == pytest.approx(own.sum(1).mean(), rel=1e-5)
    firsts = [set(data.tokens[row, start]) for row in options]
    mass = np.mean([probabilities[i, 0, list(f)].sum() for i, f in enumerate(firsts)])
    assert measured.fibre_mass == pytest.approx(mass, rel=1e-5)

    z = shuffle_without_fixed(examples % 5, rng)
    given = shuffle_without_fixed(examples // 5 if direction == "backward" else examples, rng)
    z_tokens, b_tokens = tokens.copy(), tokens.copy()
    z_tokens[:, start - 3 : start - 1] = tokens[z, start - 3 : start - 1]
    b_tokens[:, 1 : start - 3] = tokens[given, 1 : start - 3]
    z_rise, b_rise = (
        answer_losses(bridge, t, data.n_target)[0] - own for t in (z_tokens, b_tokens)
    )
    assert measured.z_gap == pytest.approx(z_rise[:, 0].mean(), abs=1e-5)
    assert measured.b_gap == pytest.approx(b_rise[:, 0].mean(), abs=1e-5)
    assert measured.z_gap_string == pytest.approx(z_rise.sum(1).mean(), abs=1e-5)
    assert measured.b_gap_string == pytest.approx(b_rise.sum(1).mean(), abs=1e-5)
    assert abs(measured.z_gap) > 1e-3
    assert abs(measured.b_gap) > 1e-3


def test_a_network_that_knows_nothing_stands_at_log_k():
    bridge = build()
    with torch.no_grad():
        named_weights(bridge)["head.weight"].zero_()
    result = evaluate(network(bridge), draw_sample(dataset(k=7), 30, 0, CPU))
    assert result.candidate_loss == pytest.approx(math.log(7))
    assert result.candidate_loss_error == pytest.approx(0, abs=1e-9)
    assert result.character_losses == pytest.approx([math.log(40)] * 5)
    assert result.fibre_mass == pytest.approx(7 / 40)
    assert result.z_gap == result.b_gap == 0


def test_k_1_has_candidate_loss_0_and_no_z_gap():
    result = evaluate(network(build()), draw_sample(dataset(k=1), 12, 0, CPU))
    assert result.candidate_loss == 0
    assert result.candidate_accuracy == 1
    assert result.z_gap == 0


def test_evaluating_changes_nothing_and_repeats_exactly():
    bridge = build()
    weights = named_weights(bridge)
    before = {name: weight.clone() for name, weight in weights.items()}
    sample = draw_sample(dataset(), 30, 0, CPU)
    assert evaluate(network(bridge), sample) == evaluate(network(bridge), sample)
    assert all(torch.equal(before[name], weights[name]) for name in weights)


@pytest.mark.parametrize(
    ("k", "n_b", "size"), [(2, 10, 20), (3, 100, 64), (5, 1000, 340), (10, 2000, 312), (1, 20, 20)]
)
def test_samples_grow_with_the_dataset(k, n_b, size):
    assert sample_size(dataset(k, n_b), most=512) == size


def test_a_sample_is_at_most_as_large_as_asked():
    assert sample_size(dataset(5, 1000), most=100) == 100
