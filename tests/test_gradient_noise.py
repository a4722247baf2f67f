import numpy as np
import pytest

from mbc.gradient_noise import (
    BatchGradients,
    batch_gradients,
    batch_size_slope,
    noise_shares,
    noise_size,
)
from mbc.task import draw_map, sequences
from tests.conftest import CPU, initial

N = 50
VARIANCES = np.array([40.0, 4.0, *[1.0] * (N - 2)])


def synthetic(batch_size, batches=4000, seed=0, dataset_size=10**9):
    """Gradients with mean 2 along the first entry, covariance VARIANCES / batch size."""
    rng = np.random.default_rng(seed)
    gradients = rng.standard_normal((batches, N)) * np.sqrt(VARIANCES / batch_size)
    gradients *= np.sqrt((dataset_size - batch_size) / (dataset_size - 1))
    gradients[:, 0] += 2
    return BatchGradients(
        batch_size,
        dataset_size,
        np.square(gradients).sum(1),
        gradients[:, [2, 1, 0]],
        float(np.square(gradients.mean(0)).sum()),
    )


def test_shares_of_a_known_covariance():
    smallest, second, first = noise_shares(synthetic(8), (-0.1, 1.0, 5.0), N)
    assert [s.direction for s in (smallest, second, first)] == [
        *("smallest", "largest 2", "largest 1")
    ]
    trace = VARIANCES.sum()
    for share, variance in ((smallest, 1), (second, 4), (first, 40)):
        assert share.share == pytest.approx(variance / trace, rel=0.1)
        assert share.low < N * variance / trace < share.high
    assert first.share_over_isotropic > 10 > smallest.share_over_isotropic


def test_size_signal_and_noise_scale_of_a_known_covariance():
    size = noise_size(synthetic(8), lr=0.1)
    assert size.trace == pytest.approx(VARIANCES.sum() / 8, rel=0.05)
    assert size.signal == pytest.approx(4, rel=0.05)
    assert size.noise_scale == pytest.approx(VARIANCES.sum() / 4, rel=0.1)
    assert size.step_noise == pytest.approx(0.01 * size.trace)
    assert size.temperature == pytest.approx(0.1 / 8)


def test_noise_falls_as_one_over_batch_size():
    sizes = [noise_size(synthetic(size, seed=size), lr=0.1) for size in (4, 16, 64)]
    assert batch_size_slope(sizes) == pytest.approx(-1, abs=0.05)
    assert batch_size_slope(sizes[:1]) is None


def test_drawing_without_repetition_is_corrected_for():
    sizes = [
        noise_size(synthetic(size, seed=size, dataset_size=100), lr=0.1) for size in (4, 16, 64)
    ]
    assert batch_size_slope(sizes) == pytest.approx(-1, abs=0.05)
    assert sizes[-1].trace == pytest.approx(sizes[-1].independent_trace * 36 / 99)
    assert sizes[-1].noise_scale == pytest.approx(VARIANCES.sum() / 4, rel=0.1)


def test_without_signal_there_is_no_noise_scale():
    pure = BatchGradients(4, 100, np.array([1.0, 1.0]), np.array([[1.0], [-1.0]]), 0.0)
    assert noise_size(pure, 0.1).noise_scale is None
    assert noise_size(pure, 0.1).trace == pytest.approx(2)


def test_gradients_of_a_network(make_condition):
    condition = make_condition()
    data = sequences(draw_map(condition.k, condition.n_b, condition.fibre, 0), "backward")
    weights = initial(condition)
    size = sum(weight.numel() for weight in weights.values())
    directions = np.random.default_rng(0).standard_normal((2, size)).astype(np.float32)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)

    def measure(batch_size):
        return batch_gradients(condition, weights, data, directions, batch_size, 8, 0, CPU)

    found, same, whole = measure(8), measure(8), measure(80)
    assert np.array_equal(found.squares, same.squares)
    assert found.projections.shape == (8, 2)
    assert noise_size(found, 1e-3).trace > 0
    assert noise_size(whole, 1e-3).trace == pytest.approx(0, abs=1e-6)  # all of the dataset
    assert (np.square(found.projections) <= found.squares[:, None]).all()
