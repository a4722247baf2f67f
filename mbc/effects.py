"""What the other experiments of the paper show: direction, transfer and the controls."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mbc.runs import RANDOM_WEIGHTS
from mbc.settings import TRANSFER_PREFIX


@dataclass(frozen=True)
class Ratio:
    """Waiting time of one condition over that of another, run by run of the same seed.

    Attributes:
        condition: the backward condition that the ratio is about.
        k: targets in each fibre.
        value: geometric mean over seeds; None if no seed has both transitions.
        low: smallest over seeds; None with fewer than two seeds.
        high: largest over seeds; None with fewer than two seeds.
        n_seeds: seeds with both transitions.
        n_left_out: seeds in which one of the two was censored, diverged or not run.
    """

    condition: str
    k: int
    value: float | None
    low: float | None
    high: float | None
    n_seeds: int
    n_left_out: int


def ratios(above: pd.DataFrame, below: pd.DataFrame, pair: str, moment: str) -> list[Ratio]:
    """Return for each condition of ``below`` the waiting time of ``above`` over its own.

    Args:
        above: runs of the numerator, one for each value of ``pair`` and seed.
        below: runs of the denominator, likewise; its conditions name the ratios.
        pair: the column that says which runs of one seed belong together.
        moment: ``tau`` or ``character_tau``, in steps.

    Returns:
        The ratios in the order of k.
    """
    status = f"{moment}_status"
    times = [moment, status]
    pairs = below[list(dict.fromkeys(["condition", "k", "seed", pair, *times]))].merge(
        above[[pair, "seed", *times]], on=[pair, "seed"], suffixes=("_below", "_above")
    )
    both = (pairs[f"{status}_above"] == "observed") & (pairs[f"{status}_below"] == "observed")
    results = []
    for (k, condition), group in pairs.assign(both=both).groupby(["k", "condition"]):
        seen = group[group["both"]]
        logs = np.log(
            seen[f"{moment}_above"].to_numpy(float) / seen[f"{moment}_below"].to_numpy(float)
        )
        several = len(logs) > 1
        results.append(
            Ratio(
                condition=condition,
                k=int(k),
                value=float(np.exp(logs.mean())) if len(logs) else None,
                low=float(np.exp(logs.min())) if several else None,
                high=float(np.exp(logs.max())) if several else None,
                n_seeds=len(seen),
                n_left_out=len(group) - len(seen),
            )
        )
    return results


def directions(sweep: pd.DataFrame, moment: str) -> list[Ratio]:
    """Return forward over backward waiting time for each k (Table 2 of the paper)."""
    forward, backward = (sweep[sweep["direction"] == d] for d in ("forward", "backward"))
    return ratios(forward, backward, "k", moment)


def transfers(table: pd.DataFrame, moment: str) -> list[Ratio]:
    """Return tau from random weights over tau from the forward run's for each k (Table 2).

    Above 1 forward training helped.
    """
    started = table[table["start_from"] != RANDOM_WEIGHTS]
    started = started.assign(condition=started["condition"].str.removeprefix(TRANSFER_PREFIX))
    scratch = table[table["start_from"] == RANDOM_WEIGHTS]
    return ratios(scratch, started, "condition", moment)


@dataclass(frozen=True)
class Use:
    """How much a run uses the string that it is given when its loss per character has halved.

    Attributes:
        run: its name.
        k: targets in each fibre.
        step: its ``character_tau``.
        gap: rise in nats of the whole answer's loss when the given string is shuffled.
    """

    run: str
    k: int
    step: int
    gap: float


def use_of_given(runs: pd.DataFrame, histories: dict[str, pd.DataFrame]) -> list[Use]:
    """Return for each run with an observed ``character_tau`` how much it then uses what is given.

    Args:
        runs: rows of the table of runs.
        histories: of each run by its name.
    """
    uses = []
    for _, run in runs[runs["character_tau_status"] == "observed"].iterrows():
        history = histories[run["run"]].set_index("step")
        step = int(run["character_tau"])
        uses.append(Use(run["run"], int(run["k"]), step, float(history["b_gap_string"][step])))
    return uses


def controls(sweep: pd.DataFrame, key: str, value: str) -> list[dict]:
    """Return the end and the plateau of the runs of a control beside its sweep, a row a run."""
    runs = sweep[sweep[key] == value]
    columns = {
        "run": "run",
        "k": "k",
        "log_k": "log_k",
        "final_ratio": "final_ratio",
        "largest_z_gap": "largest_z_gap",
        "tau_status": "tau_status",
        "marginal": "marginal",
        "marginal_status": "marginal_status",
        "plateau_joint_loss": "joint_loss",
        "plateau_fibre_mass": "fibre_mass",
        "plateau_b_gap": "b_gap",
        "plateau_z_gap": "z_gap",
    }
    rows = runs[list(columns)].rename(columns=columns).astype(object)
    return rows.where(rows.notna(), None).to_dict("records")
