import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mbc import task

FIBRES = st.sampled_from(["distinct", "free", "structured"])


@given(FIBRES, st.integers(1, 36), st.integers(1, 60), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_maps_have_the_promised_strings(fibre, k, n_b, seed):
    drawn = task.draw_map(k, n_b, fibre, seed)
    assert drawn.bases.shape == (n_b, 6)
    assert drawn.selectors.shape == (k, 2)
    assert drawn.targets.shape == (n_b, k, 1 if fibre == "structured" else 4)
    assert len(np.unique(drawn.bases, axis=0)) == n_b
    assert len(np.unique(drawn.selectors, axis=0)) == k
    all_targets = drawn.targets.reshape(n_b * k, -1)
    if fibre != "structured":
        assert len(np.unique(all_targets, axis=0)) == n_b * k
    if fibre != "free":
        assert all(len(set(firsts)) == k for firsts in drawn.targets[:, :, 0])
    assert all_targets.min() >= 0
    assert all_targets.max() < 36


@given(FIBRES, st.integers(1, 36), st.integers(1, 20))
@settings(max_examples=30, deadline=None)
def test_entropies_are_log_k_and_0(fibre, k, n_b):
    given_b, given_b_z = task.conditional_entropies(task.draw_map(k, n_b, fibre, seed=1))
    assert given_b == pytest.approx(math.log(k), abs=1e-12)
    assert given_b_z == 0


def test_entropies_see_a_broken_map():
    drawn = task.draw_map(4, 5, "free", seed=0)
    drawn.targets[0, 1] = drawn.targets[0, 0]
    assert task.conditional_entropies(drawn)[0] < math.log(4)


@pytest.mark.parametrize("fibre", ["distinct", "free", "structured"])
def test_the_seed_decides_the_map(fibre):
    one, same, other = (task.draw_map(5, 30, fibre, seed) for seed in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(vars(one).values(), vars(same).values()))
    assert not np.array_equal(one.bases, other.bases)
    assert not np.array_equal(one.targets, other.targets)


def test_structured_fibres_follow_the_first_character_of_b():
    drawn = task.draw_map(5, 400, "structured", seed=0)
    sets = {}
    for base, fibre in zip(drawn.bases, drawn.targets[:, :, 0], strict=True):
        assert sets.setdefault(base[0], set(fibre)) == set(fibre)
    orders = {tuple(fibre) for fibre in drawn.targets[:, :, 0]}
    assert len(orders) > 2 * len(sets)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ((37, 10, "distinct"), "k is 37.*at most 36"),
        ((37, 10, "structured"), "k is 37.*at most 36"),
        ((1297, 1, "free"), "k is 1297.*1296"),
        ((0, 10, "distinct"), "k is 0"),
        ((3, 0, "distinct"), "n_b is 0"),
        ((36, 50_000, "distinct"), "n_b \\* k is 1800000.*1679616"),
        ((1, 36**6 + 1, "structured"), "n_b is 2176782337"),
    ],
)
def test_impossible_requests_are_refused_in_one_sentence(request_, words):
    with pytest.raises(ValueError, match=words) as refusal:
        task.draw_map(*request_, seed=0)
    assert re.fullmatch(r"[^\n]+\.", str(refusal.value))


def test_too_many_equal_first_characters_are_refused():
    with pytest.raises(ValueError, match="n_b is 47988.*same character"):
        task.draw_map(35, 47_988, "distinct", seed=0)


def test_sequences_have_the_papers_layout():
    drawn = task.draw_map(3, 4, "distinct", seed=0)
    backward, forward = (task.sequences(drawn, d) for d in ("backward", "forward"))
    marks = [task.BOS, task.SEP, task.SEP, task.EOS]
    assert backward.tokens.shape == forward.tokens.shape == (12, 16)
    assert backward.tokens[:, [0, 7, 10, 15]].tolist() == [marks] * 12
    assert forward.tokens[:, [0, 5, 8, 15]].tolist() == [marks] * 12
    assert (backward.n_target, forward.n_target) == (5, 7)
    example = 1 * 3 + 2
    assert backward.tokens[example, 1:7].tolist() == drawn.bases[1].tolist()
    assert backward.tokens[example, 8:10].tolist() == drawn.selectors[2].tolist()
    assert backward.tokens[example, 11:15].tolist() == drawn.targets[1, 2].tolist()
    assert forward.tokens[example, 9:15].tolist() == drawn.bases[1].tolist()
    assert task.sequences(task.draw_map(3, 4, "structured", 0), "backward").tokens.shape == (12, 13)


def test_label_noise_stays_in_the_fibre_at_its_rate():
    k, rng = 10, np.random.default_rng(0)
    batch = rng.integers(500, size=20_000)
    shown = task.with_label_noise(batch, 0.2, k, rng)
    assert np.array_equal(shown // k, batch // k)
    assert (shown != batch).mean() == pytest.approx(0.2 * 0.9, abs=0.01)
    assert task.with_label_noise(batch, 0.0, k, rng) is batch


def test_backward_candidates_are_the_fibre_with_the_right_one_first():
    data = task.sequences(task.draw_map(5, 6, "distinct", seed=0), "backward")
    examples = np.array([0, 7, 29])
    chosen = task.candidates(data, examples, seed=0)
    assert np.array_equal(chosen[:, 0], examples)
    assert np.array_equal(np.sort(chosen), examples[:, None] // 5 * 5 + np.arange(5))


def test_forward_candidates_are_different_base_strings():
    data = task.sequences(task.draw_map(5, 9, "distinct", seed=0), "forward")
    chosen = task.candidates(data, np.arange(45), seed=0)
    assert np.array_equal(chosen[:, 0], np.arange(45))
    assert all(len(set(row)) == 5 for row in chosen // 5)
    small = task.sequences(task.draw_map(5, 2, "distinct", seed=0), "forward")
    assert task.candidates(small, np.arange(10), seed=0).shape == (10, 2)


@given(st.lists(st.integers(0, 8), min_size=1, max_size=60), st.integers(0, 100))
@settings(deadline=None)
def test_shuffle_leaves_no_value_in_place_where_it_can(values, seed):
    values = np.array(values)
    result = task.shuffle_without_fixed(values, np.random.default_rng(seed))
    assert np.array_equal(np.sort(result), np.arange(len(values)))
    largest = np.bincount(values).max()
    assert (values[result] == values).sum() == max(0, 2 * largest - len(values))


@pytest.mark.parametrize("fibre", ["distinct", "structured"])
def test_strings_carry_the_whole_map(fibre):
    drawn = task.draw_map(6, 20, fibre, seed=2)
    back = task.from_strings(task.to_strings(drawn))
    assert all(np.array_equal(a, b) for a, b in zip(vars(drawn).values(), vars(back).values()))
    with pytest.raises(ValueError, match="complete table"):
        task.from_strings(task.to_strings(drawn)[:-1])


def test_streams_of_different_purposes_differ_and_the_global_one_is_untouched():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    draws = [task.generator(0, purpose).random() for purpose in ("map", "order", "map")]
    assert draws[0] == draws[2] != draws[1]
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
