"""The runs, as a table for people."""

import math

import pandas as pd

from mbc.runs import moment_text
from mbc.task import N_CHARACTERS


def not_looked_into(table: pd.DataFrame) -> list[str]:
    """Return a sentence on the followed runs that diverged, if there are any."""
    lost = table[(table["checkpoint_every"] > 0) & (table["run_status"] == "diverged")]
    if lost.empty:
        return []
    return [f"Not looked into, because they diverged: {', '.join(lost['run'])}."]


def beside_paper(table: pd.DataFrame, paper_times: dict[str, int]) -> list[str]:
    """Return a sentence on the waiting times of (B, z) → A as a whole beside the paper's.

    Args:
        table: the table of runs.
        paper_times: the paper's waiting times by condition, in steps.
    """
    seen = table[(table["tau_status"] == "observed") & (table["direction"] == "backward")]
    ratios = (seen["tau"].astype(float) / seen["condition"].map(paper_times)).dropna()
    if ratios.empty:
        return []
    return [
        f"Of {len(ratios)} waiting times of (B, z) → A that the paper gives, too, ours is the "
        f"longer in {(ratios > 1).sum()}; the ratio is {ratios.median():.2f} in the median, "
        f"{ratios.min():.2f} to {ratios.max():.2f} in all."
    ]


def run_lines(table: pd.DataFrame, paper_times: dict[str, int]) -> pd.DataFrame:
    """Return the table of runs as short texts for people, a row a run.

    Args:
        table: the table of runs.
        paper_times: waiting times to compare with, by condition; without any there is no column.
    """
    rows = []
    for _, run in table.iterrows():
        backward = run["direction"] == "backward"  # forward z says nothing, and nothing is k-fold
        rows.append(
            {
                "run": run["run"],
                "k": run["k"],
                "n_b": run["n_b"],
                "D": run["dataset_size"],
                "τ": moment_text(run, "tau"),
                **_paper_time(run, paper_times),
                "onset": moment_text(run, "onset") if backward else "",
                "onset, whole answer": moment_text(run, "onset_string") if backward else "",
                "loss onset": moment_text(run, "loss_onset"),
                "plateau / log k": _ratio(run["plateau_ratio"]) if backward else "",
                "peak / log k": _ratio(run["plateau_peak_ratio"]) if backward else "",
                "first character at τ / log 36": (
                    _ratio(run["tau_loss_character_1"] / math.log(N_CHARACTERS)) if backward else ""
                ),
                "ended": ENDINGS[run["run_status"]].format(_end(run)),
            }
        )
    return pd.DataFrame(rows)


ENDINGS = {
    "transition_passed": "at {}, after its transition",
    "step_budget_spent": "at {}, its budget",
    "diverged": "diverged at {}",
}
"""How runs end, and at which step, in words."""


def _ratio(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.2f}"


def _end(run: pd.Series) -> int:
    return run["diverged_at"] if run["run_status"] == "diverged" else run["last_step"]


def _paper_time(run: pd.Series, paper_times: dict[str, int]) -> dict[str, str]:
    if not paper_times:
        return {}
    time = paper_times.get(run["condition"])
    compared = time is not None and run["tau_status"] == "observed"
    ratio = f"{run['tau'] / time:.2f}" if compared else ""
    return {"paper's τ": "" if time is None else str(time), "τ / paper's": ratio}
