"""The paper's waiting times beside ours; its places differ about some conditions."""

import numpy as np
import pandas as pd
from scipy import stats

PaperTimes = dict[str, dict[str, int]]
"""Waiting times in steps by sweep and condition."""


def paper_range(paper_times: PaperTimes, condition: str) -> tuple[int, int] | None:
    """Return the least and the largest waiting time of a condition; None where there is none."""
    times = [of_sweep[condition] for of_sweep in paper_times.values() if condition in of_sweep]
    return (min(times), max(times)) if times else None


def with_paper_tau(runs: pd.DataFrame, of_sweep: dict[str, int]) -> pd.DataFrame:
    """Return runs with the columns ``paper_tau`` and ``paper_tau_examples``, which may be missing.

    Args:
        runs: columns condition, batch_size.
        of_sweep: the paper's waiting times in one sweep, in steps, by condition.
    """
    paper_tau = runs["condition"].map(of_sweep).astype(float)
    return runs.assign(paper_tau=paper_tau, paper_tau_examples=paper_tau * runs["batch_size"])


def beside_paper(table: pd.DataFrame, paper_times: PaperTimes) -> list[str]:
    """Return sentences on the waiting times of (B, z) → A as a whole beside the paper's.

    A condition counts with the geometric mean over its seeds, if all had a transition.

    Args:
        table: the table of runs.
        paper_times: the paper's; may be empty.
    """
    backward = table[table["direction"] == "backward"]
    both = _ratios(backward, paper_times)
    if both.empty:
        return []
    ratios = both["ratio"]
    sentences = [
        f"Of {len(both)} conditions of (B, z) → A whose waiting time the paper gives, too, ours "
        f"is longer in {(ratios > 1).sum()} and shorter in {(ratios < 1).sum()}; the ratio is "
        f"{ratios.median():.2f} in the median, {ratios.min():.2f} to {ratios.max():.2f} in all, to "
        "the nearest where the paper's places differ, which they do by a factor of up to "
        f"{both['spread'].max():.2f}."
    ]
    alone = [
        f"{_ratios(runs, paper_times)['ratio'].median():.2f} with seed {seed}"
        for seed, runs in backward.groupby("seed")
    ]
    if len(alone) > 1:
        sentences.append(f"The median is {', '.join(alone)}.")
    return sentences


def _ratios(backward: pd.DataFrame, paper_times: PaperTimes) -> pd.DataFrame:
    """Return a row for each condition that both have: ratio to the paper's, and its own spread."""
    rows = []
    for condition, runs in backward.groupby("condition", sort=False):
        ends = paper_range(paper_times, condition)
        if ends is None or not (runs["tau_status"] == "observed").all():
            continue
        ours = stats.gmean(runs["tau"].astype(float))
        rows.append({"ratio": ours / np.clip(ours, *ends), "spread": ends[1] / ends[0]})
    return pd.DataFrame(rows, columns=["ratio", "spread"])
