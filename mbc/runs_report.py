"""The runs, as a table for people."""

import math

import pandas as pd

from mbc.paper_times import PaperTimes, paper_range
from mbc.runs import moment_text
from mbc.task import N_CHARACTERS


def not_looked_into(table: pd.DataFrame) -> list[str]:
    """Return a sentence on the followed runs that diverged, if there are any."""
    lost = table[(table["checkpoint_every"] > 0) & (table["run_status"] == "diverged")]
    if lost.empty:
        return []
    return [f"Not looked into, because they diverged: {', '.join(lost['run'])}."]


def run_lines(table: pd.DataFrame, paper_times: PaperTimes) -> pd.DataFrame:
    """Return the table of runs as short texts for people, a row a run.

    Args:
        table: the table of runs.
        paper_times: waiting times to compare with; without any there is no column.
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


def _paper_time(run: pd.Series, paper_times: PaperTimes) -> dict[str, str]:
    if not paper_times:
        return {}
    ends = paper_range(paper_times, run["condition"])
    if ends is None:
        return {"paper's τ": "", "τ / paper's": ""}
    ratios = [f"{run['tau'] / end:.2f}" for end in sorted({*ends}, reverse=True)]
    return {
        "paper's τ": " to ".join(str(end) for end in sorted({*ends})),
        "τ / paper's": " to ".join(ratios) if run["tau_status"] == "observed" else "",
    }
