"""Where our numbers differ from the paper's, and what can be ruled out as the reason."""

import pandas as pd

from mbc.claims import NOT_REPRODUCED, OTHER_SIZE, number_text
from mbc.runs import RANDOM_WEIGHTS, moment_text, transition_first

BOUNDS = {None: "", "at least": "≥ ", "at most": "≤ "}
"""How the bounds of `mbc.claims.Measured` are written before a number."""


def differences(claims: dict) -> pd.DataFrame:
    """Return a row for each claim with a number that ours does not confirm.

    Args:
        claims: the judged claims by name.

    Returns:
        Columns ``claim``, ``paper``, ``ours``, ``ours / paper`` and ``remark``, as text. Where the
        paper gives a range alone the ratio is to its nearer end. It is empty where it means
        nothing, because one of the two numbers is not above 0.
    """
    rows = []
    for claim in claims.values():
        ours = claim["ours"].get("value")
        if claim["verdict"] not in (OTHER_SIZE, NOT_REPRODUCED) or ours is None:
            continue
        if "paper" in claim:
            paper = claim["paper"]
            said = number_text(paper)
        elif "paper_range" in claim:
            low, high = claim["paper_range"]
            paper = min((low, high), key=lambda end: abs(end - ours))
            said = f"{number_text(low)} to {number_text(high)}"
        else:
            continue
        bound = BOUNDS[claim["ours"].get("bound")]
        ratio = f"{bound}{ours / paper:.2g}" if min(ours, paper) > 0 else ""
        rows.append(
            {
                "claim": claim["claim"],
                **{"paper": said, "ours": f"{bound}{number_text(ours)}", "ours / paper": ratio},
                "remark": claim["remark"],
            }
        )
    return pd.DataFrame(rows, columns=["claim", "paper", "ours", "ours / paper", "remark"])


CONTROLS = ("schedule", "initialisation")
"""The sweeps of what the paper leaves open."""


def ruled_out(table: pd.DataFrame, sweeps: dict[str, pd.DataFrame], scaling: dict) -> pd.DataFrame:
    """Return how far three numbers move with what the paper leaves open.

    They are the base condition's waiting time, the lead of its onset over its loss onset, as a
    share of the latter, and the exponent of the dataset size. A reason is ruled out if varying it
    moves the number by less than what is to be explained.

    Args:
        table: the table of runs.
        sweeps: of `mbc.runs.all_sweeps`.
        scaling: the scaling metrics.

    Returns:
        A row for each variation of schedule, initialisation, seed and definition that is in the
        table; columns ``varied``, ``number``, ``as defined``, ``varied to`` and ``ratio``, the
        numbers as text. The ratio is empty for leads and where a waiting time was not reached, a
        lead where an onset was not.
    """
    scratch = table[table["start_from"] == RANDOM_WEIGHTS]
    base = scratch[scratch["condition"] == "base"]
    if base.empty:
        return pd.DataFrame()
    by_seed = {run["seed"]: run for _, run in transition_first(base).iterrows()}
    first, *others = by_seed.values()
    compared = [
        (f"{what} ({run['run']})", by_seed[run["seed"]], run)
        for what in CONTROLS
        for _, run in sweeps[what].iterrows()
        if run["condition"] != "base" and run["seed"] in by_seed
    ]
    compared += [(f"seed ({run['run']})", first, run) for run in others]
    rows = [_times(varied, of, run, "tau") for varied, of, run in compared]
    names = {seed: f", {run['run']}" if others else "" for seed, run in by_seed.items()}
    rows += [
        _times(f"definition (loss per character{names[seed]})", run, run, "character_tau")
        for seed, run in by_seed.items()
    ]
    rows += [_leads(varied, of, run, "lead_fraction") for varied, of, run in compared]
    rows += [
        _leads(
            f"definition (z-gap of the whole answer{names[seed]})", run, run, "lead_fraction_string"
        )
        for seed, run in by_seed.items()
    ]
    exponents = [fit["exponent"] for fit in scaling["thresholds"].values() if "exponent" in fit]
    usual = scaling["dataset_size"].get("exponent")
    if exponents and usual:
        rows += [
            _row(
                "definition (threshold)", "exponent of D", f"{usual:.2f}", f"{end:.2f}", end / usual
            )
            for end in (min(exponents), max(exponents))
        ]
    return pd.DataFrame(rows)


def _times(varied: str, base: pd.Series, run: pd.Series, moment: str) -> dict[str, str]:
    """Return a moment of a run beside the waiting time of the base run."""
    seen = {base["tau_status"], run[f"{moment}_status"]} == {"observed"}
    ratio = run[moment] / base["tau"] if seen else None
    return _row(varied, "τ of base", moment_text(base, "tau"), moment_text(run, moment), ratio)


def _leads(varied: str, base: pd.Series, run: pd.Series, lead: str) -> dict[str, str]:
    """Return a lead of a run beside that of the base run; leads near 0 have no ratio."""
    leads = (base["lead_fraction"], run[lead])
    texts = ["" if pd.isna(value) else f"{value:.2f}" for value in leads]
    return _row(varied, "lead of base", *texts, None)


def _row(varied: str, number: str, usual: str, other: str, ratio: float | None) -> dict[str, str]:
    return {
        **{"varied": varied, "number": number, "as defined": usual, "varied to": other},
        "ratio": "" if ratio is None else f"{ratio:.2f}",
    }
