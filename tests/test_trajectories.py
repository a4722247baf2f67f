import math

import numpy as np
import pytest
import torch

from mbc.trajectories import (
    COMPONENTS,
    WHOLE,
    Displacement,
    RandomWalk,
    component_of,
    displacements,
    equidistant,
    independent_cosine,
    parameter_counts,
    phase_cosines,
    random_walk,
    sampling_error,
)
from mbc.transitions import Moment
from stages.displacement import analyse
from stages.files import read_json
from stages.followed_run import write_analysis
from tests.conftest import initial
from tests.followed import write_followed_run

TAU = Moment(step=1000, observed=True, after=990, examples=1)
N = 20_000
TOLERANCE = 4 / math.sqrt(N)


def cosines_of(walk, length):
    """Cosines of consecutive displacements of weights [steps, N]."""
    found = displacements(
        lambda step: {"head.weight": torch.from_numpy(walk[step])},
        list(range(0, len(walk), length)),
    )
    return [d.cosines[WHOLE] for d in found if d.cosines]


def adamw_walk(gradients, lr=0.01, weight_decay=0.0):
    """The weights [steps + 1, N] of PyTorch's AdamW, given its gradients."""
    weight = torch.zeros(gradients.shape[1], requires_grad=True)
    optimizer = torch.optim.AdamW([weight], lr=lr, weight_decay=weight_decay)
    walk = [weight.detach().numpy().copy()]
    for gradient in gradients:
        weight.grad = torch.from_numpy(gradient)
        optimizer.step()
        walk.append(weight.detach().numpy().copy())
    return np.stack(walk)


def noise(steps, seed=0):
    return np.random.default_rng(seed).standard_normal((steps, N), dtype=np.float32)


def test_norms_and_cosines_of_known_displacements():
    weights = {
        0: {"head.weight": torch.zeros(2), "layers.0.ln1.weight": torch.zeros(1)},
        5: {"head.weight": torch.tensor([3.0, 0.0]), "layers.0.ln1.weight": torch.tensor([4.0])},
        10: {"head.weight": torch.tensor([3.0, 2.0]), "layers.0.ln1.weight": torch.tensor([8.0])},
    }
    first, second = displacements(weights.get, [0, 5, 10])
    assert (first.start, first.end, first.cosines) == (0, 5, {})
    assert (first.norms[WHOLE], first.norms["unembedding"], first.norms["mlp"]) == (5, 3, 0)
    assert second.norms[WHOLE] == pytest.approx(math.sqrt(20))
    # what did not move has no cosine, and the layer norm counts in the whole alone
    assert second.cosines == {WHOLE: pytest.approx(16 / 5 / math.sqrt(20)), "unembedding": 0}


def test_each_checkpoint_is_read_once():
    read = []

    def weights_at(step):
        read.append(step)
        return {"head.weight": torch.tensor([float(step)])}

    assert [d.cosines.get(WHOLE) for d in displacements(weights_at, [0, 1, 2, 4])] == [None, 1, 1]
    assert read == [0, 1, 2, 4]
    assert list(displacements(weights_at, [0])) == []


def test_every_weight_of_a_transformer_has_its_place(make_condition):
    weights = initial(make_condition(n_layers=2))
    counts = parameter_counts(weights)
    places = {name: component_of(name) for name in weights}
    assert set(places.values()) == {*COMPONENTS, None}
    assert all((place is None) == ("ln" in name) for name, place in places.items())
    norms = sum(w.numel() for name, w in weights.items() if "ln" in name)
    assert sum(counts[part] for part in COMPONENTS) + norms == counts[WHOLE]
    assert counts[WHOLE] == sum(w.numel() for w in weights.values())
    assert counts["unembedding"] == weights["head.weight"].numel()
    assert counts["mlp"] > counts["embedding"] > 0
    with pytest.raises(ValueError, match="first.weight is not"):
        component_of("first.weight")


def test_equidistant_checkpoints():
    assert equidistant([0, 10, 20, 30, 40, 50], 20) == [0, 20, 40]
    assert equidistant([0, 10, 20, 40], 10) == [0, 10, 20]
    assert equidistant([10], 10) == [10]


def test_directed_movement_has_cosine_1_and_turning_back_minus_1():
    walk = np.arange(41.0)[:, None] * np.ones(5)
    assert cosines_of(walk, 10) == pytest.approx([1, 1, 1])
    back = np.concatenate([walk[:21], walk[:20][::-1]])
    assert cosines_of(back, 20) == pytest.approx([-1])


def test_independent_steps_without_momentum_have_cosine_0():
    walk = np.concatenate([np.zeros((1, N)), noise(60).cumsum(0)])
    assert cosines_of(walk, 20) == pytest.approx([0, 0], abs=TOLERANCE)
    assert independent_cosine(20, 20, momentum=0) == 0


def test_a_walk_with_a_drift_is_told_from_a_random_walk():
    drift = 0.1 * np.random.default_rng(1).standard_normal(N, dtype=np.float32)
    walk = np.concatenate([np.zeros((1, N)), (noise(200) + drift).cumsum(0)])
    # signal 0.1² 100² against noise 100
    assert cosines_of(walk, 100) == pytest.approx([0.5], abs=TOLERANCE)


@pytest.mark.parametrize("length", [10, 20, 60])
def test_the_null_is_what_adamw_makes_of_noise(length):
    turns = range(240, 421, 60)
    walk = adamw_walk(noise(480))
    for turn in turns:
        (measured,) = cosines_of(walk[turn - length : turn + length + 1], length)
        assert measured == pytest.approx(independent_cosine(turn, length), abs=1.5 * TOLERANCE)
    assert independent_cosine(240, length) > 5 * TOLERANCE / 2


def test_the_null_with_weight_decay_is_what_adamw_makes_of_noise():
    walk = adamw_walk(noise(500), lr=0.01, weight_decay=0.5)
    (measured,) = cosines_of(walk[300:501], 100)
    with_decay = independent_cosine(400, 100, decay=0.005)
    assert measured == pytest.approx(with_decay, abs=TOLERANCE)
    assert abs(measured - independent_cosine(400, 100)) > 2 * TOLERANCE


@pytest.mark.parametrize("length", [20, 33])
def test_the_null_with_permuted_epochs_is_what_adamw_makes_of_them(length):
    n_batches, rng = 24, np.random.default_rng(0)
    table = noise(n_batches)
    table -= table.mean(axis=0)
    # each weight has an order of its own: batches are put together anew each epoch
    gradients = np.concatenate([rng.permuted(table, axis=0) for _ in range(20)])
    walk = adamw_walk(gradients)
    for turn in (240, 300, 350):
        expected = independent_cosine(turn, length, batches_per_epoch=n_batches)
        measured = cosines_of(walk[turn - length : turn + length + 1], length)
        assert measured == pytest.approx([expected], abs=1.5 * TOLERANCE)
        assert expected < independent_cosine(turn, length) - 6 * TOLERANCE


@pytest.mark.parametrize(("length", "expected"), [(200, 0.0249), (20, 0.312)])
def test_the_closed_form_far_from_the_first_step(length, expected):
    m = 0.9
    edge = m * (1 - m**length) ** 2
    closed = edge / (length * (1 - m**2) - 2 * m * (1 - m**length))
    assert independent_cosine(1000, length) == pytest.approx(closed, rel=1e-9)
    assert closed == pytest.approx(expected, rel=0.01)
    assert independent_cosine(1000, length, batches_per_epoch=10**9) == pytest.approx(
        closed, rel=1e-4
    )
    decayed = independent_cosine(1000, length, decay=1e-5)
    assert 0 < closed - decayed < 2e-5 * length


def test_a_decay_as_fast_as_the_momentum_is_no_exception():
    near = independent_cosine(60, 20, decay=0.1 + 1e-7)
    assert independent_cosine(60, 20, momentum=0.5, decay=0.5) == pytest.approx(
        independent_cosine(60, 20, momentum=0.5, decay=0.5 + 1e-7), abs=1e-5
    )
    assert independent_cosine(60, 20, decay=0.1) == pytest.approx(near, abs=1e-5)


def test_random_walks_of_an_epoch_of_one_batch_and_of_several():
    one = random_walk(100, 20, lr=1e-3, weight_decay=0.01, batches_per_epoch=1)
    assert one.permuted is None
    several = random_walk(100, 20, lr=1e-3, weight_decay=0.01, batches_per_epoch=13)
    assert several.fresh == one.fresh
    assert several.permuted < several.fresh


def test_sampling_error_is_the_spread_of_many_walks():
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((2, 4000, 100))
    other = 0.6 * one + 0.8 * other
    cosines = (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    assert cosines.std() == pytest.approx(sampling_error(0.6, 100), rel=0.05)


def test_cosines_by_phase():
    found = [
        Displacement(start, start + 250, {WHOLE: 1.0}, {WHOLE: cosine} if start else {})
        for start, cosine in zip(range(0, 1501, 250), (0, 0.1, 0.2, 0.3, 0.8, 0.6, 0.4))
    ]
    walks = {step: RandomWalk(step / 1000, -step / 1000) for step in range(250, 1501, 250)}
    phases = phase_cosines(found, walks, TAU)
    assert {name: p.turns for name, p in phases.items()} == {
        **{"plateau": 3, "transition": 2, "end": 1}
    }
    plateau = phases["plateau"]
    assert plateau.mean == {WHOLE: pytest.approx(0.2)}
    assert (plateau.lowest[WHOLE], plateau.highest[WHOLE]) == (0.1, 0.3)
    assert (plateau.fresh, plateau.permuted) == (0.5, -0.5)
    assert phases["transition"].mean[WHOLE] == pytest.approx(0.7)
    one_batch = {step: RandomWalk(0.1, None) for step in walks}
    assert phase_cosines(found, one_batch, TAU)["end"].permuted is None
    assert phase_cosines(found[:1], walks, TAU) == {}


def test_the_stage_measures_a_run(make_condition, params, tmp_path):
    condition = make_condition(max_steps=200, checkpoint_every=10)
    write_analysis(analyse, *write_followed_run(tmp_path, condition, params))
    results = read_json(tmp_path / "metrics.json")
    assert results["length"] == 20
    assert results["batches_per_epoch"] == 3
    rows = results["displacements"]
    assert [row["start"] for row in rows] == list(range(0, 20 * len(rows), 20))
    assert all(set(row["cosines"]) == {WHOLE, *COMPONENTS} for row in rows[1:])
    assert "fresh" not in rows[0]
    assert rows[1]["fresh"] > rows[1]["permuted"]
    assert sum(phase["turns"] for phase in results["phases"].values()) == len(rows) - 1
