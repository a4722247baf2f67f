"""What a network knows at one moment of training, measured on a fixed sample of examples."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mbc.model import Segment
from mbc.network import Network
from mbc.task import BOS, SELECTOR_LENGTH, Sequences, candidates, generator, shuffle_without_fixed


@dataclass(frozen=True)
class EvaluationSample:
    """A fixed sample of examples, laid out so that shared prefixes are computed once.

    Attributes:
        tree: BOS; the given strings, from first characters on; three variants of each example
            behind them (its own z, a shuffled z, a shuffled given string); the candidate answers
            behind the first variant and the right answer behind the two others.
        answers: tokens of the candidate answers with EOS, [examples, candidates, n_target]; the
            right one stands in column 0.
    """

    tree: list[Segment]
    answers: Tensor

    @property
    def n_tokens(self) -> int:
        """Number of tokens that one evaluation passes through the network."""
        return sum(segment.tokens.numel() for segment in self.tree)


@dataclass(frozen=True)
class Evaluation:
    """The measurements of one evaluation; losses in nats, averaged over the sample in float64.

    Attributes:
        candidate_loss: minus log of the right candidate's share of the summed probability of all
            candidates, each scored as a whole string with EOS. log k at the plateau.
        candidate_loss_error: standard error of `candidate_loss` over the sample.
        candidate_accuracy: share of examples whose right candidate scores highest.
        character_losses: cross-entropy of each target character and, last, of EOS, given the true
            characters before it, over the whole vocabulary.
        joint_loss: their sum, the cross-entropy of the whole answer.
        fibre_mass: probability of the first character being one of the candidates' first ones.
        z_gap: rise of the first character's loss when z is shuffled (the paper's section 2).
        b_gap: rise of the first character's loss when the given string (B backward, A forward) is
            shuffled.
        z_gap_string: rise of the joint loss when z is shuffled.
        b_gap_string: rise of the joint loss when the given string is shuffled.
    """

    candidate_loss: float
    candidate_loss_error: float
    candidate_accuracy: float
    character_losses: tuple[float, ...]
    joint_loss: float
    fibre_mass: float
    z_gap: float
    b_gap: float
    z_gap_string: float
    b_gap_string: float


def shared_prefix_tree(
    given: np.ndarray, rest: np.ndarray, asked: int, device: torch.device
) -> list[Segment]:
    """Return examples as a tree: BOS, first characters, different given strings, the rest.

    Args:
        given: given strings with the SEP behind them, [examples, given].
        rest: everything behind, without the final EOS, [examples, rest].
        asked: number of positions at the end whose next token is asked for.
        device: where the tokens are to lie.
    """
    different, rows = np.unique(given, axis=0, return_inverse=True)
    firsts, first_rows = np.unique(different[:, :1], axis=0, return_inverse=True)
    levels = (
        (firsts, np.zeros(len(firsts), dtype=np.int64), 0),
        (different[:, 1:], first_rows, 0),
        (rest, rows, asked),
    )
    tree = [Segment(torch.full((1, 1, 1), BOS, device=device))]
    for tokens, parent_rows, n_asked in levels:
        segment = Segment(
            torch.from_numpy(tokens[:, None]).to(device),
            parent=len(tree) - 1,
            parent_rows=torch.from_numpy(parent_rows).to(device),
            asked=n_asked,
        )
        tree.append(segment)
    return tree


def sample_size(data: Sequences, most: int) -> int:
    """Return how many examples an evaluation takes: at most ``most``, at least 64 if there are.

    As many as make the evaluation pass three tokens for each example of the dataset, and no more
    than 20,000 tokens: runs on small datasets are short and cannot afford large evaluations.
    """
    n_d, length = data.tokens.shape
    shared_start = length - data.n_target - SELECTOR_LENGTH - 1
    n_candidates = candidates(data, np.zeros(1, dtype=np.int64), seed=0).shape[1]
    behind = (data.n_target - 1) * (n_candidates + 2)
    tokens_per_example = (shared_start - 1) + 3 * (SELECTOR_LENGTH + 1) + behind
    return min(most, max(64, min(3 * n_d, 20_000) // tokens_per_example), n_d)


def draw_sample(data: Sequences, size: int, seed: int, device: torch.device) -> EvaluationSample:
    """Draw the evaluation sample of a run: ``size`` different examples of its dataset.

    No example keeps its selector in the z-shuffle, nor its given string in the B-shuffle, as far
    as the sample allows; both permutations are fixed with the sample.
    """
    rng = generator(seed, "evaluation sample")
    examples = rng.choice(len(data.tokens), size=size, replace=False)
    n = len(examples)
    given_end = data.answer_start - SELECTOR_LENGTH - 1
    given = data.tokens[examples, 1:given_end]
    selectors = data.tokens[examples, given_end : data.answer_start]
    answers = data.tokens[candidates(data, examples, seed), data.answer_start :]
    given_ids = examples // data.k if data.direction == "backward" else examples
    other_z = shuffle_without_fixed(examples % data.k, rng)
    other_given = shuffle_without_fixed(given_ids, rng)

    variants = shared_prefix_tree(
        np.concatenate([given, given, given[other_given]]),
        np.concatenate([selectors, selectors[other_z], selectors]),
        asked=1,
        device=device,
    )
    right = answers[:, :1, :-1]
    behind_own, behind_shuffled = (
        Segment(
            torch.from_numpy(tokens).to(device),
            parent=len(variants) - 1,
            parent_rows=torch.arange(first, first + len(tokens), device=device),
            asked=tokens.shape[2],
        )
        for tokens, first in ((answers[:, :, :-1], 0), (np.concatenate([right, right]), n))
    )
    tree = [*variants, behind_own, behind_shuffled]
    return EvaluationSample(tree, torch.from_numpy(answers).to(device))


def evaluate(network: Network, sample: EvaluationSample) -> Evaluation:
    """Measure a network on a sample; the network is left as it is."""
    return evaluate_examples(network, sample)[0]


@torch.no_grad()
def evaluate_examples(network: Network, sample: EvaluationSample) -> tuple[Evaluation, Tensor]:
    """Return what `evaluate` does, and the candidate loss of each example, [examples]."""
    *_, first, behind_own, behind_shuffled = network.logits(sample.tree)
    n, n_candidates, _ = sample.answers.shape
    first = first.unflatten(0, (3, n))
    logits = torch.cat([first[0].expand(-1, n_candidates, -1, -1), behind_own], dim=2)
    losses = _losses(logits, sample.answers)
    own = losses[:, 0]
    scores = -losses.sum(-1)
    candidate_losses = scores.logsumexp(-1) - scores[:, 0]

    behind_shuffled = behind_shuffled.unflatten(0, (2, n))
    shuffled_logits = torch.cat([first[1:], behind_shuffled], dim=3)[:, :, 0]
    rises = _losses(shuffled_logits, sample.answers[:, 0].expand(2, -1, -1)) - own
    first_rise, string_rise = rises[..., 0].mean(-1).tolist(), rises.sum(-1).mean(-1).tolist()

    probabilities = first[0, :, 0, 0].double().softmax(-1)
    in_fibre = torch.zeros_like(probabilities).scatter_(1, sample.answers[:, :, 0], 1.0)
    evaluation = Evaluation(
        candidate_loss=candidate_losses.mean().item(),
        candidate_loss_error=candidate_losses.std(correction=0).item() / math.sqrt(n),
        candidate_accuracy=(scores.argmax(-1) == 0).double().mean().item(),
        character_losses=tuple(own.mean(0).tolist()),
        joint_loss=own.sum(-1).mean().item(),
        fibre_mass=(probabilities * in_fibre).sum(-1).mean().item(),
        z_gap=first_rise[0],
        b_gap=first_rise[1],
        z_gap_string=string_rise[0],
        b_gap_string=string_rise[1],
    )
    return evaluation, candidate_losses


def _losses(logits: Tensor, answers: Tensor) -> Tensor:
    log_probabilities = logits.double().log_softmax(-1)
    return -log_probabilities.gather(-1, answers[..., None]).squeeze(-1)
