"""Which attention heads a network needs: heads ablated one by one (section 4, appendix I)."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from mbc.conditions import Condition
from mbc.evaluation import Evaluation, EvaluationSample, draw_sample, evaluate_examples
from mbc.model import EditHeads, Segment, Weights
from mbc.network import network_of
from mbc.task import Sequences, layout

Head = tuple[int, int]
"""Layer and number of a head, both from 0; (0, 3) is the paper's L0H3."""

SAMPLE_TOKENS = 16_000
"""Tokens, about, that one evaluation of an ablated network passes at most; see
`ablation_sample`."""

LEAST_RISE = 0.01
"""Nats; a head whose ablation raises the candidate loss by less does not lead."""

RISE_ERRORS = 3.0
"""Standard errors by which a leading rise is above 0. Of 16 heads without effect one gets past
this by chance in 2% of samples, past 2 in 30%."""

MARGIN_ERRORS = 2.0
"""Standard errors by which a leader is above each other head; heads nearer to it tie with it."""


@dataclass(frozen=True)
class HeadEffect:
    """What ablating one head changes, against the intact network on the same sample, in nats.

    Attributes:
        layer: its layer, from 0.
        head: its number in the layer, from 0.
        candidate_loss_rise: rise of the candidate loss.
        candidate_loss_rise_error: standard error of that over the sample, example by example.
        first_character_rise: rise of the first target character's loss.
        joint_loss_rise: rise of the loss of the whole answer.
        z_gap_fall: fall of the z-gap of the first character.
        z_gap_string_fall: fall of the z-gap of the whole answer.
    """

    layer: int
    head: int
    candidate_loss_rise: float
    candidate_loss_rise_error: float
    first_character_rise: float
    joint_loss_rise: float
    z_gap_fall: float
    z_gap_string_fall: float


@dataclass(frozen=True)
class Remaining:
    """What a network still knows with many heads ablated; in nats but for the accuracy.

    Attributes:
        candidate_loss: as in `mbc.evaluation.Evaluation`, like all that follow.
        candidate_loss_error: its standard error.
        candidate_accuracy: share of examples.
        z_gap: of the first character.
        z_gap_string: of the whole answer.
    """

    candidate_loss: float
    candidate_loss_error: float
    candidate_accuracy: float
    z_gap: float
    z_gap_string: float


@dataclass(frozen=True)
class OnlyHead(Remaining):
    """What a network still knows with one head left.

    Attributes:
        layer: layer of the head that is left.
        head: its number in the layer.
    """

    layer: int
    head: int


@dataclass(frozen=True)
class Leading:
    """Whether one head leads: its ablation raises the candidate loss most.

    Attributes:
        verdict: ``leader``: one head stands out; ``tie``: several do, and which is first cannot be
            told from the sample; ``none``: no rise is distinguishable from 0, nothing leads.
        layer: layer of the leader; None unless there is one.
        head: number of the leader; None unless there is one.
        in_first_layer: whether the leader lies there; None unless there is one.
        tied: the heads that tie, the largest rise first; empty unless there is a tie.
        rise: the largest rise of all heads, in nats, whatever the verdict.
        rise_error: its standard error.
        second_rise: the second largest rise; None if there is only one head.
        difference: largest minus second rise, in nats.
        difference_error: its standard error, both heads ablated on the same examples.
        ratio: largest over second rise; None unless both are above 0.
        share: the largest rise over the sum of all that are above 0; None if none is.
    """

    verdict: Literal["leader", "tie", "none"]
    layer: int | None
    head: int | None
    in_first_layer: bool | None
    tied: tuple[Head, ...]
    rise: float
    rise_error: float
    second_rise: float | None
    difference: float | None
    difference_error: float | None
    ratio: float | None
    share: float | None


@dataclass(frozen=True)
class Ablations:
    """What one way of ablating heads shows.

    Attributes:
        without: each head of the network ablated alone, layer by layer.
        leading: what `without` says of a leading head.
        only_in_first_layer: all first-layer heads but one ablated, other layers intact.
        only_in_network: all heads of the network but one of the first layer ablated. Heads of
            later layers are not tried alone, as the claim is about the first, and time is short.
        no_first_layer: all first-layer heads ablated; what `only_in_first_layer` compares with.
        no_heads: all heads ablated; what `only_in_network` compares with.
    """

    without: tuple[HeadEffect, ...]
    leading: Leading
    only_in_first_layer: tuple[OnlyHead, ...]
    only_in_network: tuple[OnlyHead, ...]
    no_first_layer: Remaining
    no_heads: Remaining


@dataclass(frozen=True)
class HeadAblation:
    """The heads of a network, ablated in two ways.

    Attributes:
        examples: size of the sample.
        intact: measurements of the intact network on it.
        zero: heads put out 0, as in the paper's appendix I.
        mean: heads put out their mean at the position, see `head_means`; unlike 0 this is an
            output that the later layers know.
    """

    examples: int
    intact: Evaluation
    zero: Ablations
    mean: Ablations


def ablation_sample(
    data: Sequences, most: int, seed: int, device: torch.device
) -> EvaluationSample:
    """Draw the examples on which heads are ablated.

    At most ``most``, at most the dataset, and so many that one evaluation passes about
    `SAMPLE_TOKENS` tokens (162 examples at k = 20, 274 at k = 10, but never less than 2): a network
    of 4 layers of 4 heads is evaluated 54 times, each half a second for the paper's network on one
    core.
    """
    size = min(most, len(data.tokens))
    sample = draw_sample(data, size, seed, device)
    if sample.n_tokens <= SAMPLE_TOKENS:
        return sample
    return draw_sample(data, max(2, size * SAMPLE_TOKENS // sample.n_tokens), seed, device)


def all_heads(condition: Condition) -> list[Head]:
    """Return the heads of a condition's transformer, layer by layer."""
    return [
        (layer, head) for layer in range(condition.n_layers) for head in range(condition.n_heads)
    ]


@torch.no_grad()
def head_means(condition: Condition, weights: Weights, tree: list[Segment]) -> Tensor:
    """Return the mean output of each head at each position over the tokens of a tree.

    Each token of the tree counts once, however many sequences share it. The last layer is seen at
    asked positions only, and where a layer sees no token the mean is 0; neither matters to
    networks that are edited on the same tree.

    Returns:
        [layers, positions, heads, d_head], float32, where the tree lies.
    """
    n_positions = layout(condition.direction, condition.fibre).n_positions
    d_head = condition.d_model // condition.n_heads
    shape = (condition.n_layers, n_positions, condition.n_heads, d_head)
    device = tree[0].tokens.device
    sums = torch.zeros(shape, dtype=torch.float64, device=device)
    counts = torch.zeros(shape[:2], dtype=torch.float64, device=device)

    def add(layer: int, outputs: Tensor, positions: Tensor) -> Tensor:
        sums[layer].index_add_(0, positions, outputs.double())
        counts[layer] += positions.bincount(minlength=n_positions)
        return outputs

    network_of(condition, weights, add).logits(tree)
    return (sums / counts.clamp(min=1)[..., None, None]).float()


def ablation(heads: Collection[Head], means: Tensor | None = None) -> EditHeads:
    """Return the edit that takes from heads what they have to say.

    Args:
        heads: the heads that are ablated.
        means: what they put out instead, as of `head_means`; 0 if None.
    """
    by_layer: dict[int, list[int]] = {}
    for layer, head in heads:
        by_layer.setdefault(layer, []).append(head)

    def edit(layer: int, outputs: Tensor, positions: Tensor) -> Tensor:
        if layer not in by_layer:
            return outputs
        ablated = by_layer[layer]
        outputs = outputs.clone()
        outputs[:, ablated] = 0 if means is None else means[layer, positions][:, ablated]
        return outputs

    return edit


def only(head: Head, heads: Collection[Head], means: Tensor | None = None) -> EditHeads:
    """Return the edit that ablates all of ``heads`` but one; see `ablation`."""
    return ablation([other for other in heads if other != head], means)


@torch.no_grad()
def ablate_heads(condition: Condition, weights: Weights, sample: EvaluationSample) -> HeadAblation:
    """Ablate each head, and all but one, by zero and by mean (section 4, appendix I).

    The first asks what a head is needed for, the second what it suffices for.

    Args:
        condition: what the network is.
        weights: its parameters.
        sample: examples on which losses are measured and means taken, where the weights lie.

    Raises:
        ValueError: if the network has no heads.
    """
    if condition.network != "transformer":
        raise ValueError(f"network is {condition.network!r}: only a transformer has heads.")
    means = head_means(condition, weights, sample.tree)
    intact = _measure(condition, weights, sample, None)
    zero, mean = (
        _ablations(condition, weights, sample, intact, replacement) for replacement in (None, means)
    )
    return HeadAblation(len(sample.answers), intact[0], zero, mean)


def leading_head(heads: list[Head], rises: Tensor) -> Leading:
    """Say whether there is a head whose ablation raises the candidate loss most.

    A head leads if its mean rise is at least `LEAST_RISE` and more than `RISE_ERRORS` standard
    errors above 0, and more than `MARGIN_ERRORS` above that of each other head.

    Args:
        heads: the heads that were ablated one at a time.
        rises: rise of the candidate loss of each example by each head, in nats,
            [heads, examples].
    """
    rises = rises.double()
    means = rises.mean(1)
    order = means.argsort(descending=True, stable=True).tolist()
    first, others = order[0], order[1:]
    rise, rise_error = means[first].item(), _error(rises[first])
    nearest = [i for i in others if not _stands_out(rises[first] - rises[i], MARGIN_ERRORS)]
    if rise < LEAST_RISE or not _stands_out(rises[first], RISE_ERRORS):
        verdict = "none"
    else:
        verdict = "tie" if nearest else "leader"
    layer, head = heads[first] if verdict == "leader" else (None, None)
    second = means[others[0]].item() if others else None
    positive = means.clamp(min=0).sum().item()
    return Leading(
        verdict=verdict,
        layer=layer,
        head=head,
        in_first_layer=layer == 0 if verdict == "leader" else None,
        tied=tuple(heads[i] for i in [first, *nearest]) if verdict == "tie" else (),
        rise=rise,
        rise_error=rise_error,
        second_rise=second,
        difference=None if second is None else rise - second,
        difference_error=_error(rises[first] - rises[others[0]]) if others else None,
        ratio=rise / second if second is not None and second > 0 else None,
        share=rise / positive if positive > 0 else None,
    )


def _stands_out(differences: Tensor, errors: float) -> bool:
    return differences.mean().item() > errors * _error(differences)


def _error(values: Tensor) -> float:
    """Return the standard error of a mean over examples."""
    return values.std(correction=0).item() / math.sqrt(len(values))


def _ablations(
    condition: Condition,
    weights: Weights,
    sample: EvaluationSample,
    intact: tuple[Evaluation, Tensor],
    means: Tensor | None,
) -> Ablations:
    heads = all_heads(condition)
    first_layer = [head for head in heads if head[0] == 0]
    effects, rises = [], []
    for head in heads:
        ablated = _measure(condition, weights, sample, ablation([head], means))
        rises.append(ablated[1] - intact[1])
        effects.append(_effect(head, intact[0], ablated[0], rises[-1]))

    def remaining(edit: EditHeads) -> dict[str, float]:
        left = _measure(condition, weights, sample, edit)[0]
        return {name: getattr(left, name) for name in Remaining.__dataclass_fields__}

    return Ablations(
        without=tuple(effects),
        leading=leading_head(heads, torch.stack(rises)),
        only_in_first_layer=tuple(
            OnlyHead(**remaining(only(head, first_layer, means)), layer=head[0], head=head[1])
            for head in first_layer
        ),
        only_in_network=tuple(
            OnlyHead(**remaining(only(head, heads, means)), layer=head[0], head=head[1])
            for head in first_layer
        ),
        no_first_layer=Remaining(**remaining(ablation(first_layer, means))),
        no_heads=Remaining(**remaining(ablation(heads, means))),
    )


def _effect(head: Head, intact: Evaluation, ablated: Evaluation, rises: Tensor) -> HeadEffect:
    return HeadEffect(
        layer=head[0],
        head=head[1],
        candidate_loss_rise=ablated.candidate_loss - intact.candidate_loss,
        candidate_loss_rise_error=_error(rises),
        first_character_rise=ablated.character_losses[0] - intact.character_losses[0],
        joint_loss_rise=ablated.joint_loss - intact.joint_loss,
        z_gap_fall=intact.z_gap - ablated.z_gap,
        z_gap_string_fall=intact.z_gap_string - ablated.z_gap_string,
    )


def _measure(
    condition: Condition, weights: Weights, sample: EvaluationSample, edit: EditHeads | None
) -> tuple[Evaluation, Tensor]:
    """Return the measurements of an edited network and the candidate loss of each example.

    The error of a rise, or of what two heads differ by, is that of differences by example.
    """
    return evaluate_examples(network_of(condition, weights, edit), sample)
