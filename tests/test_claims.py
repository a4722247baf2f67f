import pandas as pd
import pytest

from mbc.claims import (
    CUT_SHORT,
    NOT_REPRODUCED,
    NOT_RUN,
    OTHER_SIZE,
    REPRODUCED,
    TOO_FEW,
    Measured,
    judge_share,
    judge_size,
    mean_with_interval,
    number_text,
)

RATIO = {"value": 3.6}
RANGE = {"low": 1.7, "high": 4.4}
EXPONENT = {"value": 1.19, "low": 1.14, "high": 1.31}


@pytest.mark.parametrize(
    ("ours", "paper", "neutral", "verdict"),
    [
        (Measured(3.0), RATIO, 1, REPRODUCED),
        (Measured(2.0), RATIO, 1, OTHER_SIZE),
        (Measured(0.8), RATIO, 1, NOT_REPRODUCED),
        (Measured(3.0, 1.5, 4.0), RATIO, 1, REPRODUCED),
        (Measured(3.3, 3.1, 3.5), RATIO, 1, OTHER_SIZE),
        (Measured(None), RATIO, 1, TOO_FEW),
        (Measured(2.0), RANGE, 1, REPRODUCED),
        (Measured(6.0), RANGE, 1, OTHER_SIZE),
        (Measured(0.5), RANGE, 1, NOT_REPRODUCED),
        (Measured(1.25, 1.22, 1.28), EXPONENT, 0, REPRODUCED),
        (Measured(1.5, 1.4, 1.6), EXPONENT, 0, OTHER_SIZE),
        (Measured(-0.2, -0.4, 0.1), EXPONENT, 0, NOT_REPRODUCED),
        (Measured(2.0, 0.05, 80.0), RATIO, 1, TOO_FEW),  # holds no effect, too
        (Measured(0.03, -0.05, 0.11), EXPONENT, 0, NOT_REPRODUCED),  # holds no effect alone
        (Measured(0.65, 0.1, 1.2), EXPONENT, 0, TOO_FEW),  # too wide
        (Measured(1.08), {"value": 1.81}, 1, TOO_FEW),  # no effect, as far as single runs tell
        (Measured(0.7), {"value": 1.81}, 1, NOT_REPRODUCED),
        (Measured(1.5, 1.2, 4.0), RATIO, 1, TOO_FEW),  # holds the paper's, but is far from it
        (Measured(14.7, bound="at least"), {"value": 16.0}, 1, CUT_SHORT),
        (Measured(21.0, bound="at least"), {"value": 16.0}, 1, OTHER_SIZE),
        (Measured(5.0, bound="at least"), RANGE, 1, CUT_SHORT),
        (Measured(0.9, bound="at most"), RATIO, 1, NOT_REPRODUCED),
        (Measured(3.0, bound="at most"), RATIO, 1, CUT_SHORT),
    ],
)
def test_sizes(ours, paper, neutral, verdict):
    assert judge_size(ours, paper, neutral)[0] == verdict


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [
        ([True] * 10, REPRODUCED),
        ([True] * 9 + [False], REPRODUCED),
        ([True] * 6 + [False] * 4, OTHER_SIZE),
        ([True] * 5 + [False] * 5, NOT_REPRODUCED),
        ([False], NOT_REPRODUCED),
        ([], NOT_RUN),
    ],
)
def test_shares(holds, verdict):
    ours, found, _ = judge_share(holds)
    assert found == verdict
    if holds:
        assert ours.low <= ours.value <= ours.high
        assert ours.n_runs == len(holds)


def test_means():
    mean = mean_with_interval(pd.Series([1.0, 2.0, 3.0, None]))
    assert mean.value == 2
    assert mean.low == pytest.approx(2 - 4.303 / 3**0.5, abs=1e-3)
    single = mean_with_interval(pd.Series([1.5]))
    assert (single.value, single.low, single.note) == (1.5, None, "single run")
    two = mean_with_interval(pd.Series([1.0, 2.0]))
    assert (two.value, two.low, two.n_runs, two.note) == (1.5, None, 2, "1 and 2")
    assert mean_with_interval(pd.Series([1.0, 2.0]), n_runs=8).n_runs == 8
    assert mean_with_interval(pd.Series([], dtype=float)).value is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (4951.0, "4,950"),
        (53_210, "53,200"),
        (-1234.5, "-1,230"),
        (999.4, "999"),
        (0.01234, "0.0123"),
    ],
)
def test_numbers_for_people(value, text):
    assert number_text(value) == text
