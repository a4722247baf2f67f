"""Where our numbers differ from the paper's, and what can be ruled out as the reason."""

import pandas as pd

from mbc.claims import NOT_REPRODUCED, OTHER_SIZE
from mbc.runs import RANDOM_WEIGHTS, moment_text

BOUNDS = {None: "", "at least": "≥ ", "at most": "≤ "}
"""How the bounds of `mbc.claims.Measured` are written before a number."""


def differences(claims: dict) -> pd.DataFrame:
    """Return a row for each claim with a number that ours does not confirm.

    Args:
        claims: the judged claims by name.

    Returns:
        Columns ``claim``, ``paper``, ``ours`` and ``ours / paper``; the last is empty where a ratio
        means nothing, because one of the two is not above 0.
    """
    rows = []
    for claim in claims.values():
        paper, ours = claim.get("paper"), claim["ours"].get("value")
        if claim["verdict"] not in (OTHER_SIZE, NOT_REPRODUCED) or paper is None or ours is None:
            continue
        bound = BOUNDS[claim["ours"].get("bound")]
        ratio = f"{bound}{ours / paper:.2g}" if min(ours, paper) > 0 else ""
        rows.append(
            {
                "claim": claim["claim"],
                **{"paper": f"{paper:.3g}", "ours": f"{bound}{ours:.3g}", "ours / paper": ratio},
            }
        )
    return pd.DataFrame(rows, columns=["claim", "paper", "ours", "ours / paper"])


CONTROLS = ("schedule", "initialisation")
"""The sweeps of what the paper leaves open."""


def ruled_out(table: pd.DataFrame, sweeps: dict[str, pd.DataFrame], scaling: dict) -> pd.DataFrame:
    """Return how far the base condition's waiting time moves with what the paper leaves open.

    A reason is ruled out if varying it moves the number by less than what is to be explained.

    Args:
        table: the table of runs.
        sweeps: of `mbc.runs.all_sweeps`.
        scaling: the scaling metrics.

    Returns:
        A row for each variation of schedule, initialisation, seed and definition that is in the
        table; columns ``varied``, ``number``, ``as defined``, ``varied to`` and ``ratio``, the
        numbers as text.
    """
    scratch = table[table["start_from"] == RANDOM_WEIGHTS]
    base = scratch[scratch["condition"] == "base"]
    if base.empty:
        return pd.DataFrame()
    by_seed = {run["seed"]: run for _, run in base.iterrows()}
    first, *others = by_seed.values()
    rows = []
    for what in CONTROLS:
        for _, run in sweeps[what].iterrows():
            if run["condition"] != "base" and run["seed"] in by_seed:
                same_seed = by_seed[run["seed"]]
                rows.append(_row(f"{what} ({run['run']})", same_seed, run, "tau"))
    rows += [_row(f"seed ({run['run']})", first, run, "tau") for run in others]
    rows.append(_row("definition (loss per character)", first, first, "character_tau"))
    exponents = [fit["exponent"] for fit in scaling["thresholds"].values() if "exponent" in fit]
    usual = scaling["dataset_size"].get("exponent")
    if exponents and usual:
        for end in (min(exponents), max(exponents)):
            rows.append(
                {
                    **{"varied": "definition (threshold)", "number": "exponent of D"},
                    **{"as defined": f"{usual:.2f}", "varied to": f"{end:.2f}"},
                    "ratio": f"{end / usual:.2f}",
                }
            )
    return pd.DataFrame(rows)


def _row(varied: str, base: pd.Series, run: pd.Series, moment: str) -> dict[str, str]:
    """Return a moment of a run beside the waiting time of the base run."""
    statuses = {base["tau_status"], run[f"{moment}_status"]}
    return {
        "varied": varied,
        "number": "τ of base",
        "as defined": moment_text(base, "tau"),
        "varied to": moment_text(run, moment),
        "ratio": f"{run[moment] / base['tau']:.2f}" if statuses == {"observed"} else "",
    }
