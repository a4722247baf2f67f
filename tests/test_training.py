import math
from itertools import islice

import numpy as np
import pandas as pd
import pytest
import torch

from mbc import training
from mbc.task import draw_map, sequences
from mbc.training import (
    Batches,
    Checkpoint,
    batch_loss,
    learning_rate,
    start,
    train,
    training_tree,
)
from tests.conftest import initial

CPU = torch.device("cpu")


def data_of(condition, seed=0):
    return sequences(
        draw_map(condition.k, condition.n_b, condition.fibre, seed), condition.direction
    )


def test_a_small_map_is_learned_and_the_run_ends_behind_its_transition(make_condition, run):
    condition = make_condition(max_steps=2000, stop_after=1.5)
    history, state = run(condition)
    assert state.status == "transition_passed"
    passed = max(state.passed.values())
    assert history["step"].iloc[-1] == state.step == math.ceil(1.5 * passed)
    assert history["candidate_loss"].iloc[-1] < 0.5 * math.log(4)
    assert history["z_gap"].iloc[-1] > 0.5
    assert history["joint_loss"].iloc[-1] < history["joint_loss"].iloc[0]


def test_history_has_every_column_and_whole_epochs(make_condition, run):
    history, _ = run(make_condition(max_steps=50))
    assert list(history) == [
        *("step", "examples", "lr", "training_loss", "gradient_norm"),
        *("candidate_loss", "candidate_loss_error", "candidate_accuracy", "joint_loss"),
        *("fibre_mass", "z_gap", "b_gap", "z_gap_string", "b_gap_string"),
        *(f"loss_character_{i}" for i in range(1, 5)),
        "loss_eos",
    ]
    assert np.isfinite(history.to_numpy(float)).all()
    assert history["step"].tolist() == sorted(set(history["step"]))
    # 80 examples in batches of 32, 32 and 16
    expected = [s // 3 * 80 + s % 3 * 32 for s in history["step"]]
    assert history["examples"].tolist() == expected


@pytest.mark.parametrize("changes", [{"direction": "forward"}, {"fibre": "structured"}])
def test_other_tasks_train(make_condition, run, changes):
    history, state = run(make_condition(max_steps=60, **changes))
    assert state.step == 60
    characters = 6 if "direction" in changes else 1
    assert f"loss_character_{characters}" in history
    assert f"loss_character_{characters + 1}" not in history


def test_a_linear_network_trains_and_stays_linear(make_condition, run):
    history, state = run(make_condition(network="linear", k=6, max_steps=60, eval_every=20))
    assert set(state.network.weights) == {
        "embed.weight",
        *("first.weight", "first.bias", "second.weight", "second.bias"),
    }
    assert history["joint_loss"].iloc[-1] < history["joint_loss"].iloc[0]


def test_transfer_starts_from_the_weights_of_another_run(make_condition, run):
    condition = make_condition(max_steps=30)
    _, other = run(make_condition(direction="forward", max_steps=30))
    data = data_of(condition)
    state = start(condition, other.network.weights, CPU)
    for name, weight in state.network.weights.items():
        assert torch.equal(weight, other.network.weights[name])
        assert weight.data_ptr() != other.network.weights[name].data_ptr()
    assert list(train(condition, data, 0, state, CPU))


def test_equal_runs_are_equal_and_seeds_differ(make_condition, run):
    condition = make_condition(max_steps=40, label_noise=0.2)
    (one, _), (same, _), (other, _) = (run(condition, seed) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one, same, check_exact=True)
    assert not one["training_loss"].equals(other["training_loss"])


@pytest.mark.parametrize("stop_at_row", [1, 3, 6])
def test_a_resumed_run_gives_the_same_rows(make_condition, run, stop_at_row, tmp_path):
    condition = make_condition(
        max_steps=120, label_noise=0.1, schedule="cosine", warmup_steps=20, eval_every=10
    )
    straight, _ = run(condition)
    data = data_of(condition)
    state = start(condition, initial(condition), CPU)
    rows = [r.flat() for r in islice(train(condition, data, 0, state, CPU), stop_at_row)]
    torch.save(state.snapshot(), tmp_path / "state.pt")

    resumed = start(condition, initial(condition), CPU)
    resumed.restore(torch.load(tmp_path / "state.pt", weights_only=True))
    rows += [r.flat() for r in train(condition, data, 0, resumed, CPU)]
    pd.testing.assert_frame_equal(pd.DataFrame(rows), straight, check_exact=True)


def test_a_finished_run_yields_nothing_more(make_condition):
    condition = make_condition(max_steps=10)
    data = data_of(condition)
    state = start(condition, initial(condition), CPU)
    assert list(train(condition, data, 0, state, CPU))
    assert state.status == "step_budget_spent"
    assert list(train(condition, data, 0, state, CPU)) == []


def test_k_1_ends_by_its_character_loss(make_condition, run):
    _, state = run(make_condition(k=1, n_b=40, max_steps=2000))
    assert state.status == "transition_passed"
    assert list(state.passed) == ["character_loss"]


def test_a_loss_that_is_not_finite_ends_the_run_as_diverged(make_condition, run, monkeypatch):
    real, calls = training.batch_loss, []

    def broken(*args):
        calls.append(1)
        return real(*args) * (float("nan") if len(calls) == 18 else 1)

    monkeypatch.setattr(training, "batch_loss", broken)
    history, state = run(make_condition(eval_every=10))
    assert state.status == "diverged"
    assert state.diverged_at == 17
    assert history["step"].max() < 17
    assert np.isfinite(history.to_numpy(float)).all()


def test_an_absurd_learning_rate_diverges(make_condition, run):
    _, state = run(make_condition(lr=1e30))
    assert state.status == "diverged"


def test_evaluations_are_dense_early_and_cost_their_share(make_condition, run, monkeypatch):
    costs = []
    real = training.draw_sample

    def recording(*args):
        costs.append(real(*args))
        return costs[-1]

    monkeypatch.setattr(training, "draw_sample", recording)
    history, state = run(make_condition(max_steps=200, lr=1e-5, eval_every=50))
    evaluation_tokens = (len(history) - 1) * costs[0].n_tokens  # the last one is always made
    assert evaluation_tokens <= 3 * training.EVALUATION_SHARE * state.trained_tokens
    assert history["step"].iloc[0] == 0
    assert len(history) > 3


def test_spacing_is_5_percent_once_affordable(make_condition, run, monkeypatch):
    monkeypatch.setattr(training, "EVALUATION_SHARE", 1e9)
    history, _ = run(make_condition(max_steps=150, lr=1e-5, eval_every=4))
    steps = history["step"].to_numpy()
    assert (np.diff(steps) <= np.maximum(1, steps[:-1] / 19)).all()
    assert np.diff(steps).max() == 4


def test_an_epoch_shows_every_example_once(make_condition):
    condition = make_condition()
    batches = Batches(condition, data_of(condition), seed=0)
    epoch = [batches.at(step)[0] for step in range(3)]
    assert [len(batch) for batch in epoch] == [32, 32, 16]
    assert sorted(np.concatenate(epoch)) == list(range(80))
    assert sorted(np.concatenate([batches.at(s)[0] for s in (3, 4, 5)])) == list(range(80))
    assert not np.array_equal(batches.at(3)[0], epoch[0])
    assert np.array_equal(batches.at(0)[0], epoch[0])


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_label_noise_changes_targets_within_their_fibre(make_condition, noise):
    condition = make_condition(label_noise=noise)
    data = data_of(condition)
    batch, targets = Batches(condition, data, seed=0).at(1)
    assert np.array_equal(batch, Batches(make_condition(), data, seed=0).at(1)[0])
    assert np.array_equal(targets // 4, batch // 4)
    # drawn from all four of a fibre, about 8 of 32 are their own
    assert 0 < (targets != batch).sum() < 32 if noise else np.array_equal(targets, batch)
    _, answers = training_tree(data, batch, targets, CPU)
    assert np.array_equal(answers.numpy(), data.tokens[targets, data.answer_start :])


def test_training_loss_is_the_mean_over_the_examples_of_full_and_short_batches(
    make_condition, run, monkeypatch
):
    losses, sizes = [], []

    def recording(network, tree, answers):
        loss = batch_loss(network, tree, answers)
        losses.append(loss.item())
        sizes.append(len(answers))
        return loss

    monkeypatch.setattr(training, "batch_loss", recording)
    monkeypatch.setattr(training, "EVALUATION_SHARE", 1e9)
    monkeypatch.setattr(training, "EVALUATIONS_PER_E_FOLD", 1)  # so evaluations are steps apart
    history, _ = run(make_condition(max_steps=40, eval_every=10))
    steps = history["step"].tolist()
    both = 0
    for before, row in zip([-1, *steps], history.to_dict("records")):
        since = slice(before + 1, row["step"] + 1)  # the batch drawn at its own step is included
        total = sum(loss * size for loss, size in zip(losses[since], sizes[since]))
        assert row["training_loss"] == pytest.approx(total / sum(sizes[since]), rel=1e-6)
        both += {16, 32} == set(sizes[since])
    assert both > 3


def test_the_optimiser_takes_every_step_at_its_learning_rate(make_condition):
    condition = make_condition(schedule="cosine", warmup_steps=10, max_steps=30)
    state = start(condition, initial(condition), CPU)
    rates = []
    state.optimizer.register_step_pre_hook(
        lambda optimizer, *_: rates.extend(group["lr"] for group in optimizer.param_groups)
    )
    rows = [row.flat() for row in train(condition, data_of(condition), 0, state, CPU)]
    assert rates == [learning_rate(condition, step) for step in range(30)]
    assert all(row["lr"] == rates[row["step"]] for row in rows[:-1])


def test_a_step_is_one_of_adamw(make_condition, run):
    condition = make_condition(max_steps=1, weight_decay=0.1)
    _, state = run(condition)
    before = start(condition, initial(condition), CPU).network
    data = data_of(condition)
    batch_loss(
        before, *training_tree(data, *Batches(condition, data, seed=0).at(0), CPU)
    ).backward()
    for name, weight in before.weights.items():
        decayed = weight.detach() * (1 - 0.01 * 0.1)
        # after one step both moments, corrected for their start, are those of the one gradient
        expected = decayed - 0.01 * weight.grad / (weight.grad.abs() + 1e-8)
        torch.testing.assert_close(state.network.weights[name].detach(), expected)


def test_learning_rates(make_condition):
    assert learning_rate(make_condition(), 599) == 0.01
    cosine = make_condition(schedule="cosine", warmup_steps=10, max_steps=110)
    rates = [learning_rate(cosine, step) for step in range(111)]
    assert rates[:10] == pytest.approx([0.001 * s for s in range(1, 11)])
    assert rates[10] == pytest.approx(0.01)
    assert rates[60] == pytest.approx(0.005)
    assert rates[110] == pytest.approx(0, abs=1e-12)
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_training_leaves_the_global_generators_alone(make_condition, run):
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    run(make_condition(max_steps=5))
    assert torch.equal(torch.rand(1), expected)


def test_checkpoints_are_the_weights_at_their_steps_and_change_no_row(make_condition, run):
    condition = make_condition(max_steps=25, checkpoint_every=10)
    data = data_of(condition)
    state = start(condition, initial(condition), CPU)
    rows, kept = [], {}
    for news in train(condition, data, 0, state, CPU):
        if isinstance(news, Checkpoint):
            kept[news.step] = {name: w.detach().clone() for name, w in news.weights.items()}
        else:
            rows.append(news.flat())
    straight, _ = run(make_condition(max_steps=25))
    pd.testing.assert_frame_equal(pd.DataFrame(rows), straight, check_exact=True)
    assert list(kept) == [0, 10, 20]
    assert all(torch.equal(kept[0][name], w) for name, w in initial(condition).items())
    _, shorter = run(make_condition(max_steps=10))
    assert all(torch.equal(kept[10][n], w) for n, w in shorter.network.weights.items())


def test_bfloat16_trains_float32_weights_near_float32(make_condition, run):
    rows, states = zip(
        *(run(make_condition(max_steps=40, precision=p)) for p in ("float32", "bfloat16")),
        strict=True,
    )
    assert all(w.dtype == torch.float32 for w in states[1].network.weights.values())
    assert not rows[0].equals(rows[1])
    assert rows[1]["joint_loss"].to_numpy() == pytest.approx(rows[0]["joint_loss"], rel=0.05)
    _, linear = run(make_condition(max_steps=5, precision="bfloat16", network="linear"))
    assert linear.status == "step_budget_spent"
