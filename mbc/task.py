"""The task: a map (B, z) -> A in which B alone leaves k answers and the selector z picks one.

Section 2 of the paper. A *fibre* is the set of the k targets A of one base string B.
"""

import math
import string
from dataclasses import dataclass
from typing import Literal

import numpy as np

Fibre = Literal["distinct", "free", "structured"]
Direction = Literal["backward", "forward"]

ALPHABET = string.ascii_lowercase + string.digits
N_CHARACTERS = len(ALPHABET)
PAD, BOS, EOS, SEP = range(N_CHARACTERS, N_CHARACTERS + 4)
VOCABULARY_SIZE = N_CHARACTERS + 4

BASE_LENGTH = 6
SELECTOR_LENGTH = 2
TARGET_LENGTH = {"distinct": 4, "free": 4, "structured": 1}
"""Characters of a target A by kind of fibre, EOS not counted."""


@dataclass(frozen=True)
class AmbiguousMap:
    """A map with k-fold ambiguity; every entry is a character index in 0..35.

    Attributes:
        bases: base strings B, [n_b, 6], all different.
        selectors: selectors z, [k, 2], all different, the same for every B.
        targets: targets A, [n_b, k, characters]; ``targets[b, z]`` answers (B, z).
    """

    bases: np.ndarray
    selectors: np.ndarray
    targets: np.ndarray

    @property
    def n_b(self) -> int:
        """Number of base strings."""
        return len(self.bases)

    @property
    def k(self) -> int:
        """Number of targets in each fibre."""
        return len(self.selectors)

    @property
    def dataset_size(self) -> int:
        """Number of examples, D = n_b * k."""
        return self.n_b * self.k


@dataclass(frozen=True)
class Layout:
    """Where what stands in the token sequence of an example: BOS given SEP z SEP target EOS.

    Attributes:
        n_given: characters of the given string.
        n_target: tokens that are predicted: target characters and EOS.
    """

    n_given: int
    n_target: int

    @property
    def answer_start(self) -> int:
        """Position of the first target character."""
        return 1 + self.n_given + 1 + SELECTOR_LENGTH + 1

    @property
    def n_positions(self) -> int:
        """Tokens that a network is given: all but the final EOS."""
        return self.answer_start + self.n_target - 1


def layout(direction: Direction, fibre: Fibre) -> Layout:
    """Return the layout of a task's sequences."""
    a, b = TARGET_LENGTH[fibre], BASE_LENGTH
    return Layout(b, a + 1) if direction == "backward" else Layout(a, b + 1)


@dataclass(frozen=True)
class Sequences:
    """All D examples of a map as token sequences of equal length.

    Example ``i`` is base string ``i // k`` with selector ``i % k``.

    Attributes:
        tokens: [D, length], from BOS to EOS.
        n_target: number of tokens at the end that are predicted: target characters and EOS.
        direction: ``backward`` is BOS B SEP z SEP A EOS, ``forward`` is BOS A SEP z SEP B EOS.
        k: targets in each fibre.
    """

    tokens: np.ndarray
    n_target: int
    direction: Direction
    k: int

    @property
    def answer_start(self) -> int:
        """Position of the first target character."""
        return self.tokens.shape[1] - self.n_target


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Return the random generator of one purpose; different purposes give independent streams."""
    return np.random.default_rng([seed, *purpose.encode()])


def check_map_request(k: int, n_b: int, fibre: Fibre) -> None:
    """Refuse a map that cannot exist.

    Raises:
        ValueError: one sentence that names the parameter, its value and what is allowed.
    """
    if k < 1:
        raise ValueError(f"k is {k}: a fibre needs at least 1 target.")
    if n_b < 1:
        raise ValueError(f"n_b is {n_b}: a map needs at least 1 base string.")
    if n_b > N_CHARACTERS**BASE_LENGTH:
        raise ValueError(
            f"n_b is {n_b}: only {N_CHARACTERS**BASE_LENGTH} different base strings of "
            f"{BASE_LENGTH} characters exist."
        )
    if fibre != "free" and k > N_CHARACTERS:
        raise ValueError(
            f"k is {k}: with fibre {fibre!r} the targets of a fibre start with different "
            f"characters, so k is at most {N_CHARACTERS}."
        )
    if k > N_CHARACTERS**SELECTOR_LENGTH:
        raise ValueError(
            f"k is {k}: only {N_CHARACTERS**SELECTOR_LENGTH} different selectors of "
            f"{SELECTOR_LENGTH} characters exist."
        )
    if fibre != "structured" and n_b * k > N_CHARACTERS ** TARGET_LENGTH[fibre]:
        raise ValueError(
            f"n_b * k is {n_b * k}: only {N_CHARACTERS ** TARGET_LENGTH[fibre]} different targets "
            f"of {TARGET_LENGTH[fibre]} characters exist."
        )


def draw_map(k: int, n_b: int, fibre: Fibre, seed: int) -> AmbiguousMap:
    """Draw a map from its seed.

    ``distinct``: all n_b * k targets differ, and within a fibre their first characters differ.
    ``free``: all targets differ, nothing else is asked.
    ``structured``: a target is one character. The first character of B decides which k characters
    are its fibre, and for each B the selectors point to them in an order of its own, so that the
    fibre is easily learned from B while the order must be memorised.

    Raises:
        ValueError: if no such map exists.
    """
    check_map_request(k, n_b, fibre)
    rng = generator(seed, f"map {fibre}")
    bases = _different_strings(rng, n_b, BASE_LENGTH)
    selectors = _different_strings(rng, k, SELECTOR_LENGTH)
    if fibre == "free":
        targets = _different_strings(rng, n_b * k, TARGET_LENGTH[fibre]).reshape(n_b, k, -1)
    elif fibre == "distinct":
        targets = _targets_with_different_first_characters(rng, k, n_b)
    else:
        identity = np.tile(np.arange(N_CHARACTERS), (N_CHARACTERS, 1))
        fibres = rng.permuted(identity, axis=1)[:, :k]
        targets = rng.permuted(fibres[bases[:, 0]], axis=1)[:, :, None]
    return AmbiguousMap(bases, selectors, targets)


def conditional_entropies(ambiguous_map: AmbiguousMap) -> tuple[float, float]:
    """Return (H(A|B), H(A|B,z)) in nats, counted from the table with B and z uniform.

    For every map of this project they are log k and 0 (the paper's section 2).
    """
    rows = list(_rows(ambiguous_map))
    h_given_b = _conditional_entropy([(b, a) for b, _, a in rows])
    h_given_b_z = _conditional_entropy([((b, z), a) for b, z, a in rows])
    return h_given_b, h_given_b_z


def sequences(ambiguous_map: AmbiguousMap, direction: Direction) -> Sequences:
    """Lay out all examples of a map as token sequences, in the order of the table."""
    d, k = ambiguous_map.dataset_size, ambiguous_map.k
    b = np.repeat(ambiguous_map.bases, k, axis=0)
    z = np.tile(ambiguous_map.selectors, (ambiguous_map.n_b, 1))
    a = ambiguous_map.targets.reshape(d, -1)
    given, asked = (b, a) if direction == "backward" else (a, b)
    marks = {mark: np.full((d, 1), mark) for mark in (BOS, SEP, EOS)}
    tokens = np.hstack([marks[BOS], given, marks[SEP], z, marks[SEP], asked, marks[EOS]])
    return Sequences(tokens.astype(np.int64), asked.shape[1] + 1, direction, k)


def with_label_noise(
    batch: np.ndarray, noise: float, k: int, rng: np.random.Generator
) -> np.ndarray:
    """Return for each example the example whose target it is trained on this time.

    With probability ``noise`` that is one drawn uniformly from its own fibre (its own target
    included), else itself (section 3.4 of the paper).

    Args:
        batch: example indices, [batch].
        noise: probability in [0, 1].
        k: targets in each fibre.
        rng: source of the draws; untouched when ``noise`` is 0.
    """
    if noise == 0:
        return batch
    hit = rng.random(len(batch)) < noise
    drawn = batch // k * k + rng.integers(k, size=len(batch))
    return np.where(hit, drawn, batch)


def candidates(data: Sequences, examples: np.ndarray, seed: int) -> np.ndarray:
    """Return for each example the k candidate answers among which it is scored.

    Backward, these are the targets of its fibre. Forward there is no fibre: they are its own base
    string and k - 1 different others of the map (all, if the map has fewer), drawn from the seed.

    Returns:
        Example indices whose answers are the candidates, [examples, candidates]; the right one
        stands in column 0.
    """
    k = data.k
    if data.direction == "backward":
        rotation = (examples[:, None] % k + np.arange(k)) % k
        return examples[:, None] // k * k + rotation
    n_b = len(data.tokens) // k
    n_others = min(k, n_b) - 1
    rng = generator(seed, "forward candidates")
    chosen = np.empty((len(examples), n_others + 1), dtype=np.int64)
    chosen[:, 0] = examples
    for row, own in enumerate(examples // k):
        others = rng.choice(n_b - 1, size=n_others, replace=False)
        chosen[row, 1:] = (others + (others >= own)) * k
    return chosen


def shuffle_without_fixed(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a permutation of positions such that no position receives the value that it had.

    Where that cannot be (one value fills more than half of the positions), as few as possible do.

    Args:
        values: integers, [n].
        rng: source of the draws.

    Returns:
        Positions, [n]: position ``i`` receives ``values[result[i]]``.
    """
    order = rng.permutation(len(values))
    order = order[np.argsort(values[order], kind="stable")]
    largest = np.unique_counts(values).counts.max()
    result = np.empty_like(order)
    result[order] = np.roll(order, largest)
    return result


def to_strings(ambiguous_map: AmbiguousMap) -> list[tuple[str, str, str]]:
    """Return the D examples as readable strings (B, z, A), in the order of the table."""
    return [tuple(map(_decode, row)) for row in _rows(ambiguous_map)]


def from_strings(rows: list[tuple[str, str, str]]) -> AmbiguousMap:
    """Rebuild a map from the strings of `to_strings`.

    Raises:
        ValueError: if the rows are not a complete map in table order.
    """
    bases = list(dict.fromkeys(b for b, _, _ in rows))
    selectors = list(dict.fromkeys(z for _, z, _ in rows))
    if [(b, z) for b, z, _ in rows] != [(b, z) for b in bases for z in selectors]:
        raise ValueError("The dataset is not a complete table of base strings and selectors.")
    targets = _encode([a for _, _, a in rows]).reshape(len(bases), len(selectors), -1)
    return AmbiguousMap(_encode(bases), _encode(selectors), targets)


def _different_strings(rng: np.random.Generator, count: int, length: int) -> np.ndarray:
    numbers = rng.choice(N_CHARACTERS**length, size=count, replace=False)
    return _digits(numbers, length)


def _digits(numbers: np.ndarray, length: int) -> np.ndarray:
    powers = N_CHARACTERS ** np.arange(length - 1, -1, -1)
    return numbers[..., None] // powers % N_CHARACTERS


def _targets_with_different_first_characters(
    rng: np.random.Generator, k: int, n_b: int
) -> np.ndarray:
    identity = np.tile(np.arange(N_CHARACTERS), (n_b, 1))
    first = rng.permuted(identity, axis=1)[:, :k]
    n_rest = N_CHARACTERS ** (TARGET_LENGTH["distinct"] - 1)
    rest = np.empty_like(first)
    for character in range(N_CHARACTERS):
        places = first == character
        if places.sum() > n_rest:
            raise ValueError(
                f"n_b is {n_b}: with fibre 'distinct' and k {k}, more than {n_rest} targets would "
                f"start with the same character, and no more than that exist."
            )
        rest[places] = rng.choice(n_rest, size=places.sum(), replace=False)
    return np.concatenate([first[..., None], _digits(rest, TARGET_LENGTH["distinct"] - 1)], axis=-1)


def _rows(ambiguous_map: AmbiguousMap):
    for base, fibre in zip(ambiguous_map.bases, ambiguous_map.targets, strict=True):
        for selector, target in zip(ambiguous_map.selectors, fibre, strict=True):
            yield tuple(base.tolist()), tuple(selector.tolist()), tuple(target.tolist())


def _conditional_entropy(pairs: list[tuple]) -> float:
    counts: dict = {}
    for given, outcome in pairs:
        outcomes = counts.setdefault(given, {})
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    entropy = 0.0
    for outcomes in counts.values():
        total = sum(outcomes.values())
        entropy += sum(n * math.log(total / n) for n in outcomes.values())
    return entropy / len(pairs)


def _decode(characters: tuple[int, ...]) -> str:
    return "".join(ALPHABET[c] for c in characters)


def _encode(strings: list[str]) -> np.ndarray:
    return np.array([[ALPHABET.index(c) for c in text] for text in strings], dtype=np.int64)
