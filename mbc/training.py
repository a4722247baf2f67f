"""Training one run: a condition with a seed, from random weights to the end of its transition."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from mbc.conditions import Condition
from mbc.evaluation import (
    Evaluation,
    EvaluationSample,
    draw_sample,
    evaluate,
    sample_size,
    shared_prefix_tree,
)
from mbc.model import Segment, Weights
from mbc.network import Network, leaves, network_of
from mbc.task import N_CHARACTERS, SELECTOR_LENGTH, Sequences, generator, with_label_noise

Status = Literal["training", "transition_passed", "step_budget_spent", "diverged"]

STOP_FRACTION = 0.5
"""A run counts as past its transition when its loss is below this fraction of the plateau's."""

EVALUATION_SHARE = 0.05
"""Evaluations may cost this share of a training, a training step counted as three passes."""

EVALUATIONS_PER_E_FOLD = 20
"""Early in a run evaluations come this many times while the step number grows by a factor e."""


@dataclass(frozen=True)
class HistoryRow:
    """What is known at one evaluation.

    Attributes:
        step: optimiser steps taken.
        examples: examples seen.
        lr: learning rate of the next step.
        training_loss: mean loss in nats per token (target characters and EOS) over the examples
            of the batches since the last evaluation, the one drawn at this step included.
        gradient_norm: Euclidean norm of the gradient of the batch drawn at this step.
        evaluation: the measurements on the fixed sample.
    """

    step: int
    examples: int
    lr: float
    training_loss: float
    gradient_norm: float
    evaluation: Evaluation

    def flat(self) -> dict[str, float]:
        """Return the row as one dictionary, a column for each number."""
        values = asdict(self)
        measured = values.pop("evaluation")
        *characters, eos = measured.pop("character_losses")
        by_character = {f"loss_character_{i}": loss for i, loss in enumerate(characters, start=1)}
        return {**values, **measured, **by_character, "loss_eos": eos}


@dataclass(frozen=True)
class Checkpoint:
    """The weights at one moment: the trained ones themselves, to be copied or written at once."""

    step: int
    weights: Weights


_COUNTERS = (
    "step",
    "examples",
    "trained_tokens",
    "evaluations",
    "evaluated_at",
    "passed",
    "status",
    "diverged_at",
)


@dataclass
class RunState:
    """Where a run stands; `train` changes it in place, and with the seed it is all there is.

    Attributes:
        network: what is trained.
        optimizer: AdamW over its weights.
        step: optimiser steps taken.
        examples: examples seen.
        trained_tokens: tokens that have passed through the network in training.
        evaluations: evaluations made.
        evaluated_at: step of the last evaluation; None before the first.
        passed: for each criterion of `passed_criteria` the step at which it was first met.
        status: whether and how the run has ended.
        diverged_at: step of the first loss that was not finite.
    """

    network: Network
    optimizer: torch.optim.AdamW
    step: int = 0
    examples: int = 0
    trained_tokens: int = 0
    evaluations: int = 0
    evaluated_at: int | None = None
    passed: dict[str, int] = field(default_factory=dict)
    status: Status = "training"
    diverged_at: int | None = None

    def snapshot(self) -> dict:
        """Return the state as tensors, numbers and words, for `torch.save`."""
        counters = {name: getattr(self, name) for name in _COUNTERS}
        weights = {name: weight.detach() for name, weight in self.network.weights.items()}
        return {**counters, "weights": weights, "optimizer": self.optimizer.state_dict()}

    def restore(self, snapshot: dict) -> None:
        """Continue from a snapshot of the same run."""
        with torch.no_grad():
            for name, weight in self.network.weights.items():
                weight.copy_(snapshot["weights"][name])
        self.optimizer.load_state_dict(snapshot["optimizer"])
        for name in _COUNTERS:
            setattr(self, name, snapshot[name])


def start(condition: Condition, initial_weights: Weights, device: torch.device) -> RunState:
    """Return the state of a run at step 0, its weights copies of ``initial_weights``.

    These are `mbc.initialisation.initial_weights` or another run's last weights (transfer, section
    5 of the paper).
    """
    network = network_of(condition, leaves(initial_weights, device))
    optimizer = torch.optim.AdamW(
        network.weights.values(), lr=condition.lr, weight_decay=condition.weight_decay, fused=True
    )
    return RunState(network, optimizer)


def train(
    condition: Condition, data: Sequences, seed: int, state: RunState, device: torch.device
) -> Iterator[HistoryRow | Checkpoint]:
    """Train until the run has ended, yielding a row at each evaluation.

    With ``checkpoint_every`` it yields checkpoints, too.

    A run ends at ``stop_after`` times the step at which it met all of `passed_criteria`, or at
    ``max_steps``, or at the first loss that is not finite; ``state.status`` then says which.
    Whenever a row is yielded ``state`` is complete: a run that continues from it gives the same
    rows as one that was never interrupted.

    Evaluations come closely early in a run (`EVALUATIONS_PER_E_FOLD`), later every ``eval_every``
    steps, and are put off where together they would cost more than `EVALUATION_SHARE`.
    """
    size = sample_size(data, condition.eval_examples)
    sample = draw_sample(data, size, seed, device)
    batches = Batches(condition, data, seed)
    losses: list[Tensor] = []
    sizes: list[int] = []
    while state.status == "training":
        if condition.checkpoint_every and state.step % condition.checkpoint_every == 0:
            yield Checkpoint(state.step, state.network.weights)
        batch, targets = batches.at(state.step)
        tree, answers = training_tree(data, batch, targets, device)
        loss = batch_loss(state.network, tree, answers)
        state.optimizer.zero_grad()
        loss.backward()
        if state.evaluated_at != state.step:
            losses.append(loss.detach())
            sizes.append(len(batch))
            if _evaluation_due(condition, state, sample.n_tokens):
                row = _evaluation_row(condition, state, sample, losses, sizes)
                losses, sizes = [], []
                if row is None:
                    return
                yield row
        if state.status == "training":
            for group in state.optimizer.param_groups:
                group["lr"] = learning_rate(condition, state.step)
            state.optimizer.step()
            state.step += 1
            state.examples += len(batch)
            state.trained_tokens += sum(segment.tokens.numel() for segment in tree)


class Batches:
    """The batches of a run: a fresh permutation of all examples each epoch, a short batch last.

    A batch depends on seed and step alone, so a run that continues needs no saved generator.
    """

    def __init__(self, condition: Condition, data: Sequences, seed: int):
        self._condition, self._seed, self._k = condition, seed, data.k
        self._n_examples = len(data.tokens)
        self._epoch: int | None = None
        self._order = np.empty(0, dtype=np.int64)

    def at(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the examples of the batch at a step and those whose targets they are shown with.

        The two differ only under label noise.
        """
        size = self._condition.batch_size
        epoch, place = divmod(step, math.ceil(self._n_examples / size))
        if epoch != self._epoch:
            rng = generator(self._seed, f"data order of epoch {epoch}")
            self._order, self._epoch = rng.permutation(self._n_examples), epoch
        batch = self._order[place * size : (place + 1) * size]
        rng = generator(self._seed, f"label noise of step {step}")
        return batch, with_label_noise(batch, self._condition.label_noise, self._k, rng)


def training_tree(
    data: Sequences, batch: np.ndarray, targets: np.ndarray, device: torch.device
) -> tuple[list[Segment], Tensor]:
    """Return a batch as a tree of shared prefixes, and its answers with EOS, [batch, n_target].

    Args:
        data: all examples.
        batch: examples, [batch].
        targets: the examples whose answers they are shown with, [batch].
        device: where the tokens are to lie.
    """
    given_end = data.answer_start - SELECTOR_LENGTH - 1
    answers = data.tokens[targets, data.answer_start :]
    rest = np.hstack([data.tokens[batch, given_end : data.answer_start], answers[:, :-1]])
    tree = shared_prefix_tree(data.tokens[batch, 1:given_end], rest, data.n_target, device)
    return tree, torch.from_numpy(answers).to(device)


def batch_loss(network: Network, tree: list[Segment], answers: Tensor) -> Tensor:
    """Return the training loss: cross-entropy in nats, mean over target characters and EOS."""
    logits = network.logits(tree)[-1]
    return F.cross_entropy(logits.flatten(0, 2), answers.flatten())


def passed_criteria(condition: Condition, evaluation: Evaluation) -> dict[str, bool]:
    """Return for each criterion of a finished transition whether it is met now.

    ``candidate_loss``: below `STOP_FRACTION` of log k; exists only for k > 1, where there is a
    plateau. ``character_loss``: mean over the target characters below `STOP_FRACTION` of log 36.
    """
    *characters, _ = evaluation.character_losses
    mean_loss = sum(characters) / len(characters)
    met = {"character_loss": mean_loss < STOP_FRACTION * math.log(N_CHARACTERS)}
    if condition.k > 1:
        met["candidate_loss"] = evaluation.candidate_loss < STOP_FRACTION * math.log(condition.k)
    return met


def _stop_at(condition: Condition, state: RunState) -> int:
    n_criteria = 2 if condition.k > 1 else 1
    if len(state.passed) < n_criteria:
        return condition.max_steps
    return min(condition.max_steps, math.ceil(condition.stop_after * max(state.passed.values())))


def _evaluation_due(condition: Condition, state: RunState, sample_tokens: int) -> bool:
    if state.evaluated_at is None or state.step >= _stop_at(condition, state):
        return True
    spacing = min(condition.eval_every, max(1, state.step // EVALUATIONS_PER_E_FOLD))
    budget = EVALUATION_SHARE * 3 * state.trained_tokens
    affordable = (state.evaluations + 1) * sample_tokens <= budget
    return affordable and state.step - state.evaluated_at >= spacing


def _evaluation_row(
    condition: Condition,
    state: RunState,
    sample: EvaluationSample,
    losses: list[Tensor],
    sizes: list[int],
) -> HistoryRow | None:
    """Evaluate and advance the state; None if the run has diverged."""
    batch_losses = torch.stack(losses).double().cpu()
    evaluation = evaluate(state.network, sample)
    norm = torch.nn.utils.get_total_norm([w.grad for w in state.network.weights.values()]).item()
    finite = batch_losses.isfinite()
    if not finite.all():
        state.diverged_at = state.step - len(losses) + 1 + int(finite.long().argmin())
    elif not all(map(math.isfinite, (evaluation.joint_loss, evaluation.candidate_loss, norm))):
        state.diverged_at = state.step
    state.evaluations += 1
    state.evaluated_at = state.step
    if state.diverged_at is not None:
        state.status = "diverged"
        return None
    for criterion, met in passed_criteria(condition, evaluation).items():
        if met:
            state.passed.setdefault(criterion, state.step)
    if state.step >= _stop_at(condition, state):
        n_passed = len(state.passed)
        passed = n_passed == len(passed_criteria(condition, evaluation))
        state.status = "transition_passed" if passed else "step_budget_spent"
    return HistoryRow(
        step=state.step,
        examples=state.examples,
        lr=learning_rate(condition, state.step),
        training_loss=float(np.average(batch_losses.numpy(), weights=sizes)),
        gradient_norm=norm,
        evaluation=evaluation,
    )


def learning_rate(condition: Condition, step: int) -> float:
    """Return the learning rate of the step after ``step`` steps.

    ``constant``: always ``lr``. ``cosine``: linear warm-up from lr / warmup_steps to ``lr`` over
    ``warmup_steps``, then half a cosine down to 0 at ``max_steps``.
    """
    if condition.schedule == "constant":
        return condition.lr
    if step < condition.warmup_steps:
        return condition.lr * (step + 1) / condition.warmup_steps
    decay_steps = max(1, condition.max_steps - condition.warmup_steps)
    progress = (step - condition.warmup_steps) / decay_steps
    return condition.lr * 0.5 * (1 + math.cos(math.pi * progress))
