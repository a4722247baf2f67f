"""What `scripts.bench` measures: training steps taken in several ways, and their products alone."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import mean

import torch
import torch.nn.functional as F
from torch import Tensor
from transformer_lens.model_bridge import TransformerBridge

from mbc.attention import bridge_with
from mbc.conditions import BASE_KEYS, NETWORK_KEYS, Condition, parse
from mbc.evaluation import draw_sample, sample_size
from mbc.initialisation import initial_weights
from mbc.model import Weights
from mbc.products import linear
from mbc.task import VOCABULARY_SIZE, Sequences, draw_map, layout, sequences
from mbc.training import (
    EVALUATION_SHARE,
    Batches,
    Checkpoint,
    RunState,
    start,
    train,
    training_tree,
)

CPU = torch.device("cpu")
SEED = 0
CHECKED_STEPS = 20
LARGEST_DIFFERENCE = 1e-5
"""Relative difference that rounding may make between the losses of the two loops."""

PLAIN_SETTINGS = {
    "network": "transformer",
    "precision": "float32",
    "schedule": "constant",
    "warmup_steps": 0,
    "label_noise": 0.0,
}
"""What a plain loop is without; the base condition's own values of these keys do not count."""

PLAIN, OURS, BFLOAT16 = "plain", "ours", "ours, bfloat16"
PLAIN_PRODUCTS, OUR_PRODUCTS = "products of plain alone", "products of ours alone"
VARIANTS = (PLAIN, OURS, BFLOAT16, PLAIN_PRODUCTS, OUR_PRODUCTS)


@dataclass(frozen=True)
class Timing:
    """What one process saw in one window of time.

    Attributes:
        usual: mean seconds of a step without an evaluation, in this window.
        evaluated: mean seconds of a step with an evaluation and its history row, in all windows so
            far; 0 where there are none.
        evaluations_per_step: how many evaluations a step brings in a long run.
    """

    usual: float
    evaluated: float
    evaluations_per_step: float

    @property
    def seconds_per_step(self) -> float:
        """Mean over a long run, both kinds of steps weighted by how often they come there."""
        return self.usual + self.evaluations_per_step * (self.evaluated - self.usual)

    @property
    def evaluation_share(self) -> float:
        """Share of a long run's time that evaluations and history rows take."""
        return 1 - self.usual / self.seconds_per_step


@dataclass(frozen=True)
class Product:
    """A weight [inner, columns] that multiplies [rows, inner]."""

    rows: int
    inner: int
    columns: int

    @property
    def multiply_adds(self) -> int:
        """Multiplications with their additions: forward, to the input's gradient, the weight's."""
        return 3 * self.rows * self.inner * self.columns


def base_condition(params: dict) -> Condition:
    """Return the base condition at scale 1, without what a plain loop does not have.

    Raises:
        ValueError: names the parameter that is refused.
    """
    base = {key: params[key] for key in BASE_KEYS}
    return parse(Condition, {**base, **PLAIN_SETTINGS}, "base condition")


def examples_of(condition: Condition) -> Sequences:
    """Return the examples that all variants train on."""
    ambiguous_map = draw_map(condition.k, condition.n_b, condition.fibre, SEED)
    return sequences(ambiguous_map, condition.direction)


def plain_model(condition: Condition) -> TransformerBridge:
    """Return the TransformerLens model of a condition, freshly initialised."""
    return bridge_with(condition, _initial_weights(condition))


def _initial_weights(condition: Condition) -> Weights:
    return initial_weights(**condition.model_dump(include=set(NETWORK_KEYS)), seed=SEED)


def plain_losses(
    bridge: TransformerBridge, condition: Condition, data: Sequences
) -> Iterator[Tensor]:
    """Train in the plain way, without end; yield the loss of each step in nats, its step taken."""
    optimizer = torch.optim.AdamW(
        bridge.parameters(), lr=condition.lr, weight_decay=condition.weight_decay
    )
    batches = Batches(condition, data, SEED)
    examples = torch.from_numpy(data.tokens)
    step = 0
    while True:
        tokens = examples[batches.at(step)[0]]
        logits = bridge(tokens[:, :-1], return_type="logits")[:, data.answer_start - 1 :]
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, data.answer_start :].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        yield loss.detach()


def our_losses(
    weights: Weights, condition: Condition, data: Sequences, n_steps: int
) -> list[float]:
    """Return the loss of each of the first steps of `mbc.training.train`, in nats."""
    recorded = {"checkpoint_every": 1, "eval_examples": 2, "max_steps": n_steps + 1}
    condition = condition.model_copy(update=recorded)
    state = start(condition, weights, CPU)
    losses = []
    for news in train(condition, data, SEED, state, CPU):
        if isinstance(news, Checkpoint):
            state.evaluated_at = None  # so this step has a row, with the loss of its batch alone
        else:
            losses.append(news.training_loss)
    return losses[:n_steps]


def largest_difference(condition: Condition, data: Sequences, n_steps: int) -> float:
    """Return the largest relative difference between the losses of the plain loop and ours.

    Both start from the same weights and take ``n_steps`` steps on the same batches.
    """
    bridge = plain_model(condition)
    ours = our_losses(_initial_weights(condition), condition, data, n_steps)
    plain = [loss.item() for loss in islice(plain_losses(bridge, condition, data), n_steps)]
    return max(abs(b / a - 1) for a, b in zip(plain, ours, strict=True))


def products_of_step(condition: Condition, tokens: int, asked: int) -> list[Product]:
    """Return the products with weights in one training step of a transformer.

    Those of queries and keys and of patterns and values, some percent of all, are left out.

    Args:
        condition: sizes of the network.
        tokens: tokens that pass through the network.
        asked: tokens among them for which queries and MLP of the last layer and the unembedding
            are needed; a plain network computes them for all.
    """
    d_model, d_mlp = condition.d_model, condition.d_mlp
    products = []
    for layer in range(condition.n_layers):
        rows = asked if layer == condition.n_layers - 1 else tokens
        products += [Product(tokens, d_model, d_model)] * 2  # keys, values
        products += [Product(rows, d_model, d_model)] * 2  # queries, output
        products += [Product(rows, d_model, d_mlp), Product(rows, d_mlp, d_model)]
    return [*products, Product(asked, d_model, VOCABULARY_SIZE)]


def tree_sizes(condition: Condition, data: Sequences) -> tuple[int, int]:
    """Return how many tokens the tree of our first batch has, and how many of them are asked."""
    tree, answers = training_tree(data, *Batches(condition, data, SEED).at(0), CPU)
    return sum(segment.tokens.numel() for segment in tree), answers.numel()


def products_of(variant: str, condition: Condition, data: Sequences) -> list[Product]:
    """Return the products of one of the two variants that are nothing else."""
    if variant == OUR_PRODUCTS:
        return products_of_step(condition, *tree_sizes(condition, data))
    tokens = condition.batch_size * layout(condition.direction, condition.fibre).n_positions
    return products_of_step(condition, tokens, tokens)


class Variant:
    """A way to take steps, which goes on from one window of time to the next."""

    def __init__(self, name: str, condition: Condition, data: Sequences):
        self._state: RunState | None = None
        self._evaluated: list[float] = []
        self._evaluations_per_step = 0.0
        if name == PLAIN:
            losses = plain_losses(plain_model(condition), condition, data)
            self._steps = (False for _ in losses)
        elif name in (OURS, BFLOAT16):
            precision = "float32" if name == OURS else "bfloat16"
            self._set_up_ours(condition.model_copy(update={"precision": precision}), data)
        else:
            multiply = _multiply_by_linear if name == OUR_PRODUCTS else _multiply_plainly
            self._steps = multiply(products_of(name, condition, data))

    def warm_up(self) -> None:
        """Take a first step, which sets memory aside."""
        next(self._steps)

    def measure(self, seconds: float) -> Timing:
        """Take steps for some seconds, at least one usual one, after one that is not counted."""
        next(self._steps)
        if self._state is not None and not self._evaluated:
            self._state.evaluated_at = None  # an evaluation comes with the next step
        usual: list[float] = []
        before = time.perf_counter()
        end = before + seconds
        while before < end or not usual:
            evaluated = next(self._steps)
            now = time.perf_counter()
            (self._evaluated if evaluated else usual).append(now - before)
            before = now
        evaluated_mean = mean(self._evaluated) if self._evaluated else 0.0
        return Timing(mean(usual), evaluated_mean, self._evaluations_per_step)

    def _set_up_ours(self, condition: Condition, data: Sequences) -> None:
        # checkpoints show every step; without the limits no run ends during the measurement
        followed = {"checkpoint_every": 1, "max_steps": 10**9, "stop_after": 1e9}
        condition = condition.model_copy(update=followed)
        weights = _initial_weights(condition)
        sample = draw_sample(data, sample_size(data, condition.eval_examples), SEED, CPU)
        affordable = 3 * EVALUATION_SHARE * tree_sizes(condition, data)[0] / sample.n_tokens
        self._evaluations_per_step = min(1 / condition.eval_every, affordable)
        self._state = start(condition, weights, CPU)
        self._state.evaluated_at = 0  # the uncounted first step goes without
        self._steps = _our_steps(condition, data, self._state)


def _our_steps(condition: Condition, data: Sequences, state: RunState) -> Iterator[bool]:
    """Take a step of `mbc.training.train` each time; yield whether it had an evaluation."""
    evaluated = False
    for news in train(condition, data, SEED, state, CPU):
        if not isinstance(news, Checkpoint):
            news.flat()
            evaluated = True
        elif state.step:
            yield evaluated
            evaluated = False


def _arrays(products: list[Product]) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return inputs, weight and gradient of each product."""
    return [
        (torch.ones(p.rows, p.inner), torch.ones(p.columns, p.inner), torch.ones(p.rows, p.columns))
        for p in products
    ]


def _multiply_by_linear(products: list[Product]) -> Iterator[bool]:
    """Compute all products each time, as our network does; yield False: no evaluation."""
    arrays = _arrays(products)
    while True:
        for inputs, weight, gradient in arrays:
            linear(inputs, weight)
            linear(gradient, weight.T)
            linear(gradient.T, inputs.T)
        yield False


def _multiply_plainly(products: list[Product]) -> Iterator[bool]:
    """The same by PyTorch's usual product, into memory that is there."""
    arrays = _arrays(products)
    results = [tuple(torch.empty_like(array) for array in group) for group in arrays]
    while True:
        for (inputs, weight, gradient), (to_inputs, to_weight, outputs) in zip(
            arrays, results, strict=True
        ):
            torch.mm(inputs, weight.T, out=outputs)
            torch.mm(gradient, weight, out=to_inputs)
            torch.mm(gradient.T, inputs, out=to_weight)
        yield False
