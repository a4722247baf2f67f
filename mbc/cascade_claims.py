"""Which number answers which claim about the order of events (section 4): onset, then loss."""

from dataclasses import replace

import pandas as pd

from mbc.claims import (
    CUT_SHORT,
    Answer,
    judge_size,
    mean_with_interval,
    share_of,
)

CASCADE = {
    "": ("onset", "loss_onset"),
    "_string": ("onset_string", "loss_onset"),
    "_character": ("onset", "loss_onset_character"),
}
"""Readings of the cascade: the onset and the loss onset that each compares, by the end of the
claim's name."""


def judge_cascade(paper: dict, runs: pd.DataFrame, by_size: pd.DataFrame) -> dict[str, Answer]:
    """Return answers to the claims of section 4 about onsets by name.

    Args:
        paper: for each claim its section, words and number.
        runs: backward runs of transformers from random weights with distinct fibres, without
            those that diverged.
        by_size: runs of the dataset-size sweep, of which the section speaks.
    """
    swept = runs[runs["run"].isin(by_size["run"])]
    answers = {"b_used_first": _b_first(runs)}
    for suffix, (onset, loss_onset) in CASCADE.items():
        known = _known_order(swept, onset, loss_onset)
        answers[f"onset_before_loss{suffix}"] = share_of(
            known["before"],
            "of the runs of the dataset-size sweep that show which of the two comes first",
        )
        answers[f"lead_fraction{suffix}"] = _lead(paper[f"lead_fraction{suffix}"], known)
    return answers


def _known_order(runs: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """Return the runs in which it is known whether one moment comes before another.

    Returns:
        Columns ``condition``; ``first`` and ``second``: the moments, of a censored one the last
        step known to be before it; ``first_seen`` and ``second_seen``: whether they were observed;
        ``before``: whether the first comes before the second.
    """
    order = pd.DataFrame(
        {
            "condition": runs["condition"],
            "first": runs[first],
            "second": runs[second],
            "first_seen": runs[f"{first}_status"] == "observed",
            "second_seen": runs[f"{second}_status"] == "observed",
        }
    )
    earlier = order["first"] < order["second"]
    order["before"] = order["first_seen"] & (earlier | ~order["second_seen"])
    after = order["second_seen"] & ~earlier  # even if the first was not reached by that step
    return order[order["before"] | after]


def _lead(paper: dict, known: pd.DataFrame) -> Answer:
    """Judge the mean lead of an onset over a loss onset.

    An onset that a run did not reach, later than its loss onset, counts with the run's end: without
    it the latest onsets would be missing from the mean. So does a loss onset that it did not reach.
    Either makes the mean a bound.
    """
    leads = (known["second"] - known["first"]) / known["second"].clip(lower=1)
    ours = mean_with_interval(leads.groupby(known["condition"]).mean(), len(known))
    late, staying = int((~known["first_seen"]).sum()), int((~known["second_seen"]).sum())
    notes = [
        f"{n} of {len(known)} runs ended before the {moment} and count with their end"
        for n, moment in ((late, "onset"), (staying, "loss onset"))
        if n
    ]
    ours = replace(ours, note="; ".join(notes))
    if staying or late:
        bound = None if staying and late else "at least" if staying else "at most"
        ours = replace(ours, low=None, high=None, bound=bound)
    verdict, rule = judge_size(ours, paper, 0.0)
    if staying and late:  # bounds from both sides
        verdict = CUT_SHORT
    return ours, verdict, rule


def _b_first(runs: pd.DataFrame) -> Answer:
    return share_of(
        _known_order(runs, "onset_b_string", "onset_string")["before"],
        "B-gap of the whole answer above transition.onset_gap before its z-gap is; of the runs "
        "that show which comes first",
    )
