import numpy as np
import pytest
import torch

from mbc import curvature as module
from mbc.curvature import (
    SampleCurvature,
    conclude,
    curvature,
    disjoint_samples,
    extreme_eigenpairs,
    hessian_product,
)
from mbc.network import network_of
from mbc.task import draw_map, sequences
from mbc.training import batch_loss, training_tree
from tests.conftest import CPU, initial


@pytest.fixture(scope="module")
def small(make_condition):
    """A tiny network, its weights in float64, and its examples."""
    condition = make_condition(n_layers=2, d_model=4, n_heads=2, d_mlp=6, batch_size=8)
    data = sequences(draw_map(condition.k, condition.n_b, condition.fibre, 0), "backward")
    weights = {name: weight.double() for name, weight in initial(condition).items()}
    return condition, weights, data


@pytest.fixture(scope="module")
def dense(small):
    """Its Hessian over all examples, a column at a time."""
    condition, weights, data = small
    examples = np.arange(len(data.tokens))
    product = hessian_product(condition, weights, data, examples, CPU, torch.float64)
    size = sum(weight.numel() for weight in weights.values())
    return np.stack([product(row) for row in np.eye(size)])


def loss_at(small, flat):
    condition, weights, data = small
    moved, place = {}, 0
    for name, weight in weights.items():
        part = flat[place : place + weight.numel()]
        moved[name] = weight + torch.from_numpy(part).view_as(weight)
        place += weight.numel()
    leaves = {name: weight.requires_grad_() for name, weight in moved.items()}
    examples = np.arange(len(data.tokens))
    tree, answers = training_tree(data, examples, examples, CPU)
    loss = batch_loss(network_of(condition, leaves), tree, answers)
    gradients = torch.autograd.grad(loss, list(leaves.values()))
    return np.concatenate([g.flatten().numpy() for g in gradients])


def test_the_product_is_the_change_of_the_gradient(small, dense):
    direction = np.random.default_rng(0).standard_normal(len(dense))
    direction /= np.linalg.norm(direction)
    step = 1e-5
    ahead, behind = (loss_at(small, sign * step * direction) for sign in (1, -1))
    expected = (ahead - behind) / (2 * step)
    assert dense @ direction == pytest.approx(expected, abs=1e-6 * np.abs(expected).max())


def test_the_product_is_symmetric(dense):
    assert np.abs(dense - dense.T).max() < 1e-12 * np.abs(dense).max()


@pytest.mark.parametrize("kept", [0, 100])
def test_parts_make_up_the_exact_mean(small, dense, monkeypatch, kept):
    condition, weights, data = small
    monkeypatch.setattr(module, "EXAMPLES_AT_ONCE", 7)
    monkeypatch.setattr(module, "KEPT_EXAMPLES", kept)
    examples = np.arange(len(data.tokens))
    product = hessian_product(condition, weights, data, examples, CPU, torch.float64)
    direction = np.random.default_rng(1).standard_normal(len(dense))
    for _ in range(2):
        assert product(direction) == pytest.approx(dense @ direction, abs=1e-12)


def test_eigenvalues_are_those_of_the_dense_matrix(small, dense):
    expected = np.linalg.eigvalsh(dense)
    pairs = extreme_eigenpairs(lambda v: dense @ v, len(dense), 80, seed=0, n_largest=2)
    for value, residual, right in zip(
        pairs.values, pairs.residuals, expected[[0, -2, -1]], strict=True
    ):
        assert abs(value - right) <= residual + 1e-6 * expected[-1]
    images = (dense @ pairs.vectors.T).T
    true = np.linalg.norm(images - np.array(pairs.values)[:, None] * pairs.vectors, axis=1)
    assert true == pytest.approx(pairs.residuals, abs=1e-5 * expected[-1])


@pytest.mark.parametrize(
    ("diagonal", "smallest", "largest"),
    [
        ([5, 1, 0.5, 0.2, -0.3, *[0.1] * 20], -0.3, 5),
        ([-7, *[1] * 20], -7, 1),
        ([3, 2, 1], 1, 3),
    ],
)
def test_smallest_means_most_negative_and_largest_most_positive(diagonal, smallest, largest):
    diagonal = np.array(diagonal, dtype=float)
    pairs = extreme_eigenpairs(lambda v: diagonal * v, len(diagonal), 50, seed=1)
    assert pairs.values[0] == pytest.approx(smallest, abs=1e-4)
    assert pairs.values[-1] == pytest.approx(largest, abs=1e-4)


def test_equal_seeds_give_equal_numbers(dense):
    one, same = (extreme_eigenpairs(lambda v: dense @ v, len(dense), 20, seed=3) for _ in "ab")
    assert one.values == same.values
    assert np.array_equal(one.vectors, same.vectors)


def test_too_few_products_have_not_converged(monkeypatch):
    spectrum = np.linspace(-1, 1, 2000) ** 3

    def of_sample(products):
        pairs = extreme_eigenpairs(lambda v: spectrum * v, 2000, products, seed=0)
        return module._of_sample(pairs, examples=1, rounding=0.0)

    assert not of_sample(2).largest_converged
    assert not of_sample(2).smallest_converged
    full = of_sample(200)
    assert full.largest_converged
    assert full.smallest_converged
    assert full.products < 200


def sample(smallest, residual=0.001, rounding=0.0, largest=2.0):
    return SampleCurvature(100, 50, largest, 0.01, True, smallest, residual, True, rounding)


@pytest.mark.parametrize(
    ("first", "second", "negative"),
    [
        (sample(-0.1), sample(-0.11), True),
        (sample(-0.1), sample(-0.01), False),  # the samples disagree
        (sample(-0.1, residual=0.1), sample(-0.1), False),
        (sample(-0.1, rounding=0.1), sample(-0.1), False),
        (sample(0.1), sample(0.1), False),
        (sample(-1e-9), sample(1e-9), False),
    ],
)
def test_negative_means_beyond_residual_rounding_and_spread(first, second, negative):
    found = conclude(first, second, transferred=-0.1)
    assert found.negative == negative
    assert ("not distinguishable from 0" in found.statement) == (not negative)
    assert (found.anisotropy is not None) == negative
    if negative:
        assert found.anisotropy == pytest.approx(2 / 0.105)
        assert found.anisotropy_at_least == pytest.approx(2 / (0.11 + 0.001 + 0.01))


def test_a_direction_that_curves_upward_on_other_examples_is_the_samples_own():
    found = conclude(sample(-0.1), sample(-0.1), transferred=0.2)
    assert not found.negative
    assert found.anisotropy is None
    assert "not distinguishable from 0" in found.statement
    assert "0.2" in found.statement


def test_residuals_do_not_fall_below_the_rounding_of_products():
    rng = np.random.default_rng(0)
    diagonal = np.linspace(0, 1, 30)
    diagonal[0] = -3

    def rounded(vector):
        return diagonal * vector + 1e-3 * rng.standard_normal(30) / np.sqrt(30)

    pairs = extreme_eigenpairs(rounded, 30, 30, seed=0)
    assert min(pairs.residuals) > 2e-4


def test_samples_have_no_common_example():
    one, other = disjoint_samples(101, 2048, seed=0)
    assert len(one) == len(other) == 50
    assert not set(one) & set(other)
    assert len(disjoint_samples(1000, 30, seed=0)[0]) == 30


def test_curvature_of_a_network_in_float32(small, dense):
    condition, weights, data = small
    float32 = {name: weight.float() for name, weight in weights.items()}
    samples = disjoint_samples(80, 80, 0)
    found = curvature(condition, float32, data, samples, 60, 0, CPU)
    assert found.first.examples == 40
    assert 0 < found.first.rounding < 1e-4
    assert found.first.largest > abs(found.first.smallest)
    assert found.first.largest_residual < 0.05 * found.first.largest
    product = hessian_product(condition, float32, data, samples[0], CPU)
    bottom = extreme_eigenpairs(product, len(dense), 60, seed=0).vectors[0].astype(float)
    # the samples are the two halves of all examples, so the second one's Hessian is the rest
    second = 2 * (bottom @ dense @ bottom) - bottom @ product(bottom)
    assert found.transferred == pytest.approx(second, rel=1e-5)
