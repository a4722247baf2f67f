import numpy as np
import pandas as pd
import pytest
import torch

from mbc.evaluation import draw_sample, evaluate
from mbc.group_curves import curve_point, group_transition
from mbc.groups import draw_groups, group_accuracies
from mbc.network import Network, network_of
from mbc.task import VOCABULARY_SIZE, draw_map, sequences
from mbc.transitions import Moment
from stages.files import read_json
from stages.followed_run import write_analysis
from stages.groups import analyse
from tests.conftest import CPU
from tests.followed import write_followed_run

TAU = Moment(step=1000, observed=True, after=990, examples=1)
STEPS = list(range(0, 2101, 50))
K, N_GROUPS = 10, 200


def dataset(k=5, n_b=12, fibre="distinct", direction="backward"):
    return sequences(draw_map(k, n_b, fibre, seed=0), direction)


def whole_prefixes(tree, index):
    """The tokens from root to each sibling of a segment, [rows, siblings, length]."""
    segment = tree[index]
    if segment.parent is None:
        return segment.tokens
    before = whole_prefixes(tree, segment.parent).flatten(0, 1)[segment.parent_rows]
    before = before[:, None].expand(-1, segment.tokens.shape[1], -1)
    return torch.cat([before, segment.tokens], dim=2)


def answering(data, right):
    """A network sure of the true answer of the examples in ``right``, else of the next one's."""
    beginnings = {}
    for example, row in enumerate(data.tokens):
        group, selector = divmod(example, data.k)
        told = example if right[example] else group * data.k + (selector + 1) % data.k
        beginnings[tuple(row[: data.answer_start])] = data.tokens[told, data.answer_start :]

    def logits(tree):
        result = []
        for index, segment in enumerate(tree):
            prefixes = whole_prefixes(tree, index)
            rows, siblings, length = prefixes.shape
            out = torch.zeros(rows, siblings, segment.asked, VOCABULARY_SIZE)
            for row, sibling, asked in np.ndindex(out.shape[:3]):
                place = length - segment.asked + asked + 1 - data.answer_start
                tokens = prefixes[row, sibling, : data.answer_start].tolist()
                out[row, sibling, asked, beginnings[tuple(tokens)][place]] = 5.0
            result.append(out)
        return result

    return Network({}, logits)


def items(accuracy, seed=0, groups=N_GROUPS):
    """Group accuracies of independent items, right with probability ``accuracy``."""
    return np.random.default_rng(seed).binomial(K, accuracy, size=groups) / K


def collective_curve():
    """All groups share one rise, in the middle of which accuracy is 0.55."""
    rise = 1 / (1 + np.exp(-(np.array(STEPS) - 1000) / 100))
    return np.stack([items(0.1 + 0.9 * p, seed) for seed, p in enumerate(rise)])


def independent_curve():
    """Each group waits on its own, memoryless, then jumps from chance to 1."""
    waiting = np.random.default_rng(5).exponential(900, size=N_GROUPS)
    chance = np.stack([items(0.1, seed) for seed in range(len(STEPS))])
    return np.where(waiting <= np.array(STEPS)[:, None], 1.0, chance)


def test_groups_are_drawn_once_each_and_by_the_seed():
    drawn = draw_groups(1000, 200, seed=1)
    assert len(set(drawn)) == 200
    assert drawn.tolist() == sorted(drawn)
    assert 0 <= drawn.min() < drawn.max() < 1000
    assert np.array_equal(drawn, draw_groups(1000, 200, seed=1))
    assert not np.array_equal(drawn, draw_groups(1000, 200, seed=2))
    assert draw_groups(7, 200, seed=1).tolist() == list(range(7))


@pytest.mark.parametrize("fibre", ["distinct", "structured", "free"])
def test_a_network_that_knows_chosen_items_gets_just_these(fibre, monkeypatch):
    monkeypatch.setattr("mbc.groups.TOKENS_AT_ONCE", 300)  # several chunks
    data = dataset(fibre=fibre)
    right = np.random.default_rng(0).random((12, 5)) < 0.5
    right[3], right[4] = True, False
    chosen = np.array([0, 3, 4, 7, 8, 9, 11])
    network = answering(data, right.ravel())
    measured = group_accuracies(network, data, chosen, CPU)
    assert measured == pytest.approx(right[chosen].mean(axis=1))


def test_candidates_that_score_alike_are_not_right():
    data = dataset()
    uniform = Network(
        {}, lambda tree: [torch.zeros(*s.tokens.shape[:2], s.asked, VOCABULARY_SIZE) for s in tree]
    )
    assert group_accuracies(uniform, data, np.arange(12), CPU).tolist() == [0] * 12


def test_a_network_that_is_not_finite_knows_nothing():
    data = dataset()
    right = answering(data, np.ones(60, dtype=bool))
    broken = Network({}, lambda tree: [part * float("nan") for part in right.logits(tree)])
    assert group_accuracies(broken, data, np.arange(12), CPU).tolist() == [0] * 12


def test_mean_accuracy_is_that_of_an_evaluation_of_all_examples(make_condition, run):
    condition = make_condition(max_steps=150)
    _, state = run(condition)
    data = sequences(draw_map(4, 20, "distinct", 0), "backward")
    network = network_of(condition, state.network.weights)
    sample = draw_sample(data, 80, 0, CPU)
    accuracies = group_accuracies(network, data, np.arange(20), CPU)
    assert accuracies.mean() == pytest.approx(evaluate(network, sample).candidate_accuracy)
    assert 0.3 < accuracies.mean() < 1


def test_forward_examples_have_no_groups():
    data = dataset(direction="forward")
    with pytest.raises(ValueError, match="direction is 'forward'"):
        group_accuracies(Network({}, None), data, np.arange(3), CPU)


def test_shares_of_known_accuracies():
    point = curve_point(500, TAU, np.array([0.2, 0.8, 0.6, 1.0]), 5)
    assert (point.fraction, point.mean_accuracy) == (0.5, pytest.approx(0.65))
    assert (point.share_solved, point.share_complete) == (0.5, 0.25)
    p = point.mean_accuracy
    assert point.independent_share_complete == pytest.approx(p**5)
    assert point.independent_share_solved == pytest.approx(p**5 + 5 * p**4 * (1 - p))
    assert point.heterogeneity == pytest.approx(
        np.var([0.2, 0.8, 0.6, 1], ddof=1) / (p * (1 - p) / 5)
    )


def test_4_of_5_and_12_of_15_are_80_percent():
    for k, right in ((5, 4), (15, 12), (10, 8)):
        assert curve_point(0, TAU, np.array([right / k]), k).share_solved == 1
        assert curve_point(0, TAU, np.array([(right - 1) / k]), k).share_solved == 0


def test_independent_items_agree_with_the_binomial_and_are_not_heterogeneous():
    point = curve_point(0, TAU, items(0.75, groups=20_000), K)
    assert point.share_solved == pytest.approx(point.independent_share_solved, abs=0.01)
    assert point.share_complete == pytest.approx(point.independent_share_complete, abs=0.01)
    assert point.heterogeneity == pytest.approx(1, abs=0.05)


def test_groups_all_or_nothing_are_as_heterogeneous_as_can_be():
    point = curve_point(0, TAU, np.repeat([0.0, 1.0], 500), K)
    assert point.heterogeneity == pytest.approx(K, rel=0.01)
    assert point.share_solved == 0.5 > 5 * point.independent_share_solved


@pytest.mark.parametrize("accuracies", [np.zeros(9), np.ones(9), np.array([0.5])])
def test_heterogeneity_that_is_not_defined_is_none(accuracies):
    assert curve_point(0, TAU, accuracies, K).heterogeneity is None


def test_collective_groups_are_told_from_independent_ones():
    together = group_transition(STEPS, collective_curve(), K, TAU, seed=0, draws=500)
    alone = group_transition(STEPS, independent_curve(), K, TAU, seed=0, draws=500)
    assert together.collective is True
    assert together.width_over_mean_time < 0.5 < 1 < together.independent_low
    assert together.heterogeneity_low < together.heterogeneity_halfway
    assert together.heterogeneity_halfway < together.heterogeneity_high
    assert alone.collective is False
    assert alone.independent_low < alone.width_over_mean_time < alone.independent_high
    assert alone.heterogeneity_halfway > 5 > alone.heterogeneity_high


def test_the_width_of_a_planted_curve():
    accuracies = np.zeros((5, 100))
    for row, solved in enumerate([0, 4, 50, 81, 100]):
        accuracies[row, :solved] = 1
    found = group_transition([0, 100, 200, 300, 400], accuracies, K, TAU, seed=0, draws=100)
    assert (found.start, found.end, found.width) == (100, 300, 200)
    assert found.width_over_tau == 0.2
    assert found.n_solved == found.n_groups == 100
    expected = (4 * 50 + 46 * 150 + 31 * 250 + 19 * 350) / 100
    assert found.mean_time == pytest.approx(expected)
    assert found.width_over_mean_time == pytest.approx(200 / expected)
    assert found.width_as_cv == pytest.approx(200 / expected / (0.8416 + 1.6449), rel=1e-3)


def test_a_share_that_falls_back_counts_by_its_last_checkpoint_with_few():
    accuracies = np.zeros((4, 100))
    accuracies[1, :10] = accuracies[3, :90] = 1
    assert group_transition([0, 1, 2, 3], accuracies, K, TAU, seed=0, draws=10).start == 2
    accuracies[1, :] = 1
    found = group_transition([0, 1, 2, 3], accuracies, K, TAU, seed=0, draws=10)
    assert (found.start, found.end) == (0, 1)


def test_the_mean_waiting_time_counts_groups_that_are_not_solved():
    waiting = np.random.default_rng(0).exponential(2000, size=20_000)
    accuracies = (waiting <= np.array(STEPS)[:, None]).astype(float)
    found = group_transition(STEPS, accuracies, K, TAU, seed=0, draws=2)
    assert found.n_solved / found.n_groups == pytest.approx(1 - np.exp(-1.05), abs=0.02)
    assert found.mean_time == pytest.approx(2000, rel=0.03)


def test_exponential_groups_have_the_width_of_theory():
    fine = list(range(0, 8001, 10))
    accuracies = np.zeros((len(fine), 2000))
    accuracies[np.array(fine)[:, None] >= np.random.default_rng(1).exponential(1000, 2000)] = 1
    found = group_transition(fine, accuracies, K, TAU, seed=0, draws=200)
    theory = np.log(0.95) - np.log(0.2)
    assert found.independent_low < theory < found.independent_high
    assert found.independent_high - found.independent_low < 0.3


def test_what_cannot_be_told_is_said():
    never = group_transition(STEPS, np.zeros((len(STEPS), 9)), K, TAU, seed=0)
    assert never.statement == "None of 9 groups is solved at any checkpoint after step 0."
    some = np.zeros((len(STEPS), 9))
    some[-1, :3] = 1
    some = group_transition(STEPS, some, K, TAU, seed=0, draws=100)
    assert "more than 80% of 9 groups" in some.statement
    assert (some.end, some.width, some.collective, some.n_solved) == (None, None, None, 3)
    assert some.independent_high is None
    always = group_transition(STEPS, np.ones((len(STEPS), 9)), K, TAU, seed=0)
    assert always.statement
    assert always.collective is None
    late = group_transition(STEPS[20:], np.ones((23, 9)), K, TAU, seed=0, draws=100)
    assert "fewer than 5% of 9 groups" in late.statement


def test_a_censored_tau_gives_no_width_over_it():
    tau = Moment(step=2100, observed=False, after=2100, examples=1)
    found = group_transition(STEPS, collective_curve(), K, tau, seed=0, draws=50)
    assert found.width_over_tau is None
    assert found.width > 0


def test_equal_seeds_give_equal_intervals():
    one, same, other = (
        group_transition(STEPS, collective_curve(), K, TAU, seed, draws=100) for seed in (1, 1, 2)
    )
    assert one == same
    assert one.independent_high is None or one != other


def test_the_stage_follows_a_run(make_condition, params, tmp_path):
    condition = make_condition(max_steps=1500, stop_after=2.0, checkpoint_every=10)
    arguments = write_followed_run(tmp_path, condition, params)
    write_analysis(analyse, *arguments)
    results = read_json(tmp_path / "metrics.json")
    curve = pd.DataFrame(results["curve"])
    assert curve["step"].iloc[0] == 0
    assert curve["step"].is_monotonic_increasing
    assert curve["share_solved"].iloc[0] < 0.3 < 0.8 < curve["share_solved"].iloc[-1]
    between = curve["fraction"].between(0.49, 1.76)
    assert curve["fraction"][between].diff().max() < 0.2
    assert results["transition"]["n_groups"] == 20
    assert results["tau"]["observed"]
