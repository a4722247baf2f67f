"""The linear baseline (appendix G of the paper): two linear layers without a nonlinearity."""

import torch
from torch import Tensor

from mbc.model import Segment, Weights
from mbc.products import linear
from mbc.task import SELECTOR_LENGTH, VOCABULARY_SIZE, generator


def build_linear(
    *, n_inputs: int, n_answers: int, d_model: int, d_hidden: int, seed: int
) -> Weights:
    """Return the weights of a two-layer linear network on concatenated embeddings.

    Matrices are normal with variance 1 / inputs, biases 0.

    Args:
        n_inputs: characters of the given string and the selector together.
        n_answers: target characters and EOS, each predicted from the inputs alone.
        d_model: width of an embedding.
        d_hidden: width between the layers.
        seed: of the weights.
    """
    rng = generator(seed, "linear network")
    shapes = {
        "embed.weight": (VOCABULARY_SIZE, d_model),
        "first.weight": (d_hidden, n_inputs * d_model),
        "second.weight": (n_answers * VOCABULARY_SIZE, d_hidden),
    }
    weights = {
        name: torch.from_numpy(rng.normal(0, shape[1] ** -0.5, shape).astype("float32"))
        for name, shape in shapes.items()
    }
    weights["first.bias"] = torch.zeros(d_hidden)
    weights["second.bias"] = torch.zeros(n_answers * VOCABULARY_SIZE)
    return weights


def linear_logits(weights: Weights, tree: list[Segment], answer_start: int) -> list[Tensor]:
    """Return the logits at the asked positions of every segment; see `mbc.model.tree_logits`.

    The logits of an answer depend on the given string and the selector, not on earlier answer
    characters.

    Args:
        weights: of `build_linear`.
        tree: segments; those with siblings lie wholly within the answer.
        answer_start: position of the first target character.
    """
    paths: list[Tensor] = []
    results = []
    for segment in tree:
        rows, siblings, length = segment.tokens.shape
        own = segment.tokens.flatten(0, 1)
        if segment.parent is None:
            before = own[:, :0]
        else:
            before = paths[segment.parent].index_select(0, segment.parent_rows)
        paths.append(torch.cat([before.repeat_interleave(siblings, dim=0), own], dim=1))
        if not segment.asked:
            results.append(torch.empty(rows, siblings, 0, VOCABULARY_SIZE, device=own.device))
            continue
        known = before if before.shape[1] >= answer_start else paths[-1]
        answers = _answer_logits(weights, known, answer_start)
        answers = answers.unflatten(0, (rows, -1)).expand(-1, siblings, -1, -1)
        end = before.shape[1] + length + 1 - answer_start
        results.append(answers[:, :, end - segment.asked : end])
    return results


def _answer_logits(weights: Weights, paths: Tensor, answer_start: int) -> Tensor:
    """Return [paths, answers, vocabulary] from token paths that reach the answer."""
    z_start = answer_start - 1 - SELECTOR_LENGTH
    inputs = torch.cat([paths[:, 1 : z_start - 1], paths[:, z_start : answer_start - 1]], dim=1)
    embedded = torch.nn.functional.embedding(inputs, weights["embed.weight"]).flatten(1)
    embedded = embedded.to(weights["first.weight"].dtype)
    hidden = linear(embedded, weights["first.weight"], weights["first.bias"])
    logits = linear(hidden, weights["second.weight"], weights["second.bias"])
    return logits.to(weights["embed.weight"].dtype).unflatten(1, (-1, VOCABULARY_SIZE))
