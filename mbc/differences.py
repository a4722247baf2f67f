"""Where our numbers differ from the paper's, and what can be ruled out as the reason."""

import pandas as pd

from mbc.claims import NOT_REPRODUCED, OTHER_SIZE
from mbc.runs import RANDOM_WEIGHTS, moment_text


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
        ratio = f"{ours / paper:.2g}" if min(ours, paper) > 0 else ""
        rows.append(
            {
                "claim": claim["claim"],
                **{"paper": f"{paper:.3g}", "ours": f"{ours:.3g}", "ours / paper": ratio},
            }
        )
    return pd.DataFrame(rows, columns=["claim", "paper", "ours", "ours / paper"])


def ruled_out(table: pd.DataFrame, scaling: dict) -> pd.DataFrame:
    """Return how far the base condition's waiting time moves with what the paper leaves open.

    A reason is ruled out if varying it moves the number by less than what is to be explained.

    Args:
        table: the table of runs.
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
    first = base.iloc[0]
    compared = [
        *(("schedule", run) for run in _runs(scratch, "schedule_cosine")),
        *(("initialisation", run) for run in _runs(scratch, "initialisation_scaled")),
        *(("seed", run) for _, run in base.iloc[1:].iterrows()),
    ]
    rows = []
    for what, run in compared:
        rows.append(_row(f"{what} ({run['run']})", "τ of base", first, run, "tau", "tau"))
    definition = "definition (loss per character)"
    rows.append(_row(definition, "τ of base", first, first, "tau", "character_tau"))
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


def _runs(table: pd.DataFrame, condition: str) -> list[pd.Series]:
    return [run for _, run in table[table["condition"] == condition].iterrows()]


def _row(
    varied: str, number: str, base: pd.Series, run: pd.Series, moment: str, other: str
) -> dict[str, str]:
    statuses = {base[f"{moment}_status"], run[f"{other}_status"]}
    return {
        "varied": varied,
        "number": number,
        "as defined": moment_text(base, moment),
        "varied to": moment_text(run, other),
        "ratio": f"{run[other] / base[moment]:.2f}" if statuses == {"observed"} else "",
    }
