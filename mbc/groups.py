"""The groups of a map, and which of them a network has learned (section 3.3 of the paper).

A *group* is a base string B with its k selectors.
"""

import numpy as np
import torch

from mbc.evaluation import shared_prefix_tree
from mbc.model import Segment
from mbc.network import Network
from mbc.task import SELECTOR_LENGTH, Sequences, candidates, generator

FIRST_ROUND = 2
"""Candidates in the first round that compete with the right one; each later round takes as many as
all before it and these."""

TOKENS_AT_ONCE = 20_000
"""About as many tokens pass through the network together; it bounds the memory."""


def draw_groups(n_b: int, n_groups: int, seed: int) -> np.ndarray:
    """Draw different groups of a map.

    Returns:
        Indices of base strings in rising order, [min(n_groups, n_b)].
    """
    drawn = generator(seed, "groups").choice(n_b, size=min(n_groups, n_b), replace=False)
    return np.sort(drawn)


@torch.no_grad()
def group_accuracies(
    network: Network, data: Sequences, groups: np.ndarray, device: torch.device
) -> np.ndarray:
    """Return for each group the share of its selectors whose right candidate scores highest.

    A candidate's score is the sum of the log-probabilities of its characters and EOS, as in
    `mbc.evaluation`; a candidate that scores as high as the right one counts against it.

    Args:
        network: what answers; left as it is.
        data: all examples, backward.
        groups: indices of base strings, [groups].
        device: where the network's weights lie.

    Returns:
        [groups], multiples of 1 / k.

    Raises:
        ValueError: if the examples are forward, where a base string is no group.
    """
    if data.direction != "backward":
        raise ValueError(f"direction is {data.direction!r}: only 'backward' examples have groups.")
    at_once = max(1, TOKENS_AT_ONCE // (data.k**2 * data.n_target))
    parts = [
        _accuracies(network, data, groups[first : first + at_once], device)
        for first in range(0, len(groups), at_once)
    ]
    return np.concatenate(parts)


def _accuracies(
    network: Network, data: Sequences, groups: np.ndarray, device: torch.device
) -> np.ndarray:
    """Score candidates only until it is known whether the right one scores highest.

    Log-probabilities are negative: a candidate whose first character alone scores below the whole
    right answer cannot win. The others come by the score of their first character, in rounds; an
    item that has lost to one is done. That is exact, and several times cheaper than scoring all.
    """
    k = data.k
    examples = (groups[:, None] * k + np.arange(k)).ravel()
    # seed: backward, the candidates are the fibre itself
    answers = data.tokens[candidates(data, examples, seed=0), data.answer_start :]
    items = np.arange(len(examples))
    first, right_scores = _scores(network, data, examples, items, answers[:, 0], device)
    first_scores = np.take_along_axis(first, answers[:, :, 0], axis=1)
    order = np.argsort(-first_scores[:, 1:], axis=1, kind="stable") + 1
    right = np.isfinite(right_scores)  # weights that are not finite know nothing
    ranks, done = np.arange(k - 1), 0
    while done < k - 1:
        now = ranks[done : 2 * done + FIRST_ROUND]
        contenders = order[:, now]
        open_ = right[:, None] & (
            np.take_along_axis(first_scores, contenders, axis=1) >= right_scores[:, None]
        )
        rows, columns = np.nonzero(open_)
        if len(rows) == 0:
            break
        chosen = answers[rows, contenders[rows, columns]]
        _, scores = _scores(network, data, examples, rows, chosen, device)
        right[rows[scores >= right_scores[rows]]] = False
        done = now[-1] + 1
    return right.reshape(len(groups), k).mean(axis=1)


def _scores(
    network: Network,
    data: Sequences,
    examples: np.ndarray,
    rows: np.ndarray,
    answers: np.ndarray,
    device: torch.device,
) -> tuple[np.ndarray, np.ndarray]:
    """Return log-probabilities of the first character and of whole answers.

    Args:
        network: what answers.
        data: all examples.
        examples: example indices, [examples].
        rows: for each answer the place in ``examples`` of the question, rising, [answers].
        answers: tokens with EOS, [answers, n_target].
        device: where the network's weights lie.

    Returns:
        Of every character as the first one, [different rows, vocabulary], and of the answers,
        [answers].
    """
    asked, places = np.unique(rows, return_inverse=True)
    tokens = data.tokens[examples[asked]]
    given_end = data.answer_start - SELECTOR_LENGTH - 1
    tree = shared_prefix_tree(
        tokens[:, 1:given_end], tokens[:, given_end : data.answer_start], asked=1, device=device
    )
    behind = Segment(
        torch.from_numpy(answers[:, None, :-1]).to(device),
        parent=len(tree) - 1,
        parent_rows=torch.from_numpy(places).to(device),
        asked=data.n_target - 1,
    )
    *_, first, rest = (part.double().log_softmax(-1) for part in network.logits([*tree, behind]))
    first = first[:, 0, 0]
    of_answers = torch.from_numpy(answers).to(device)
    later = rest[:, 0].gather(-1, of_answers[:, 1:, None]).squeeze(-1).sum(-1)
    scores = first[behind.parent_rows].gather(-1, of_answers[:, :1]).squeeze(-1) + later
    return first.cpu().numpy(), scores.cpu().numpy()
