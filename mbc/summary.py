"""The few numbers that tell one pipeline from another, for ``dvc exp show`` and the report."""

import math

import pandas as pd

from mbc.claims import VERDICTS
from mbc.task import N_CHARACTERS


def summarise(table: pd.DataFrame, by_size: pd.DataFrame, scaling: dict, claims: dict) -> dict:
    """Return about 30 named numbers; what cannot be computed is None.

    Args:
        table: the table of runs.
        by_size: runs of the dataset-size sweep, for the plateau.
        scaling: the scaling metrics.
        claims: the judged claims by name.
    """
    defined = table[table["tau_status"] != "undefined"]
    swept = by_size[by_size["tau_status"].isin(["observed", "censored"])]
    base = table[(table["condition"] == "base") & (table["tau_status"] == "observed")]
    law = scaling["dataset_size"]
    # a fit that leaves out the slowest runs is biased towards 0
    exponent, interval = law, "bootstrap_interval"
    if law["censored"]["n_censored"]:
        exponent, interval = law["censored"], "interval"
    exponents = [fit["exponent"] for fit in scaling["thresholds"].values() if "exponent" in fit]
    verdicts = [claim["verdict"] for claim in claims.values() if not claim["added"]]
    counts = defined["tau_status"].value_counts()
    return {
        "runs": {
            "total": len(table),
            **{
                status: int(counts.get(status, 0))
                for status in ("observed", "censored", "diverged")
            },
        },
        "tau_base": _number(base["tau"].mean()),
        "first_character_at_tau_base": _number(
            base["tau_loss_character_1"].mean() / math.log(N_CHARACTERS)
        ),
        "plateau": {
            "ratio_mean": _number(swept["plateau_ratio"].mean()),
            "ratio_sd": _number(swept["plateau_ratio"].std()),
            "peak_ratio_mean": _number(swept["plateau_peak_ratio"].mean()),
            "z_gap_largest": _number(swept["plateau_z_gap"].max()),
            "fibre_mass_over_chance": _number(
                (swept["plateau_fibre_mass"] * N_CHARACTERS / swept["k"]).mean()
            ),
        },
        "lead_fraction": claims["lead_fraction"]["ours"].get("value"),
        "dataset_size": {
            "exponent": exponent.get("exponent"),
            **_bounds(exponent.get(interval)),
            "runs_without_transition": law["n_left_out"],
            "r_squared": law.get("r_squared"),
            "exponent_over_thresholds": max(exponents) - min(exponents) if exponents else None,
        },
        "fixed_size": {
            size: {
                "exponent_of_k": fit.get("exponent"),
                **_bounds(fit["equivalence"].get("interval")),
                "equivalent_to_0": fit["equivalence"]["equivalent"],
            }
            for size, fit in scaling["fixed_size"].items()
        },
        "batch_size_ratio_examples": claims["batch_size_examples"]["ours"].get("value"),
        "learning_rate_ratio_steps": claims["learning_rate_ratio"]["ours"].get("value"),
        "claims": _counts(verdicts),
    }


def _counts(verdicts: list[str]) -> dict[str, int]:
    """Return how many claims have each verdict; all that are undecided count together."""
    kinds = [verdict.split(":")[0] for verdict in verdicts]
    return {kind: kinds.count(kind) for kind in (v.split(":")[0] for v in VERDICTS)}


def _bounds(interval: list[float] | None) -> dict:
    low, high = interval or (None, None)
    return {"low": low, "high": high}


def _number(value) -> float | None:
    return None if pd.isna(value) else float(value)
