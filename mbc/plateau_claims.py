"""Which number answers which claim about the plateau (section 3.1): one short function a claim."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from mbc.claims import (
    CUT_SHORT,
    NOT_REPRODUCED,
    OPEN,
    OTHER_SIZE,
    REPRODUCED,
    TOO_FEW,
    Answer,
    judge_share,
    mean_with_interval,
    share_of,
)

WITHOUT_NOISE = "of the runs without label noise, since section 3.1 has none"


def judge_plateau(
    paper: dict, runs: pd.DataFrame, structured: pd.DataFrame, by_size: pd.DataFrame
) -> dict[str, Answer]:
    """Return answers to the claims of section 3.1 by name.

    Args:
        paper: for each claim its section, words and number.
        runs: backward runs of transformers from random weights with distinct fibres.
        structured: the same with structured fibres.
        by_size: runs of the dataset-size sweep.
    """
    finished = runs[runs["tau_status"] != "diverged"]
    known = finished.dropna(subset="plateau_ratio")
    limit = paper["z_gap_on_plateau"]["limit"]
    stands = "candidate loss within 0.9 and 1.1 log k on average over transition.plateau_window"
    return {
        "plateau_height": _height(paper["plateau_height"], by_size, known),
        "plateau_forms_early": _forms_early(paper["plateau_forms_early"]["limit"], known),
        "z_gap_on_plateau": _without_noise(
            known,
            lambda some: some["plateau_z_gap"].abs() < limit,
            "mean over transition.plateau_window, of the first character",
        ),
        "two_regimes": _without_noise(
            runs[runs["plateau_ratio"].notna() | (runs["tau_status"] == "diverged")],
            lambda some: _near(some) & (some["tau_status"] == "observed"),
            f"{stands}, and τ within the step budget",
        ),
        "marginal_first": _marginal(_without_noise(known, _near, stands)),
        "marginal_first_strict": _strict_marginal(
            finished, structured[structured["tau_status"] != "undefined"]
        ),
        "sharp_transition": _sharp(
            runs[(runs["loss_onset_status"] == "observed") & (runs["label_noise"] == 0)]
        ),
    }


def _near(runs: pd.DataFrame) -> pd.Series:
    return runs["plateau_ratio"].between(0.9, 1.1)


def _without_noise(
    runs: pd.DataFrame, holds: Callable[[pd.DataFrame], pd.Series], criterion: str
) -> Answer:
    """Judge by the runs without label noise, and say how many of the others it holds for."""
    clean, noisy = (runs[(runs["label_noise"] > 0) == is_noisy] for is_noisy in (False, True))
    ours, verdict, rule = share_of(holds(clean), f"{criterion}; {WITHOUT_NOISE}")
    if len(noisy):
        note = f"{ours.note}; with label noise {holds(noisy).sum()} of {len(noisy)}"
        ours = replace(ours, note=note.removeprefix("; "))
    return ours, verdict, rule


def _marginal(answer: Answer) -> Answer:
    """Leave open what a network shows that has learned nothing."""
    ours, verdict, rule = answer
    rule += "; undecided where it would be reproduced, since networks at chance stand there, too"
    return ours, OPEN if verdict == REPRODUCED else verdict, rule


def _height(paper: dict, by_size: pd.DataFrame, known: pd.DataFrame) -> Answer:
    rule = (
        f"mean over the dataset-size sweep: reproduced within {paper['low']:g} and "
        f"{paper['high']:g}, in its direction only within 0.9 and 1.1"
    )
    swept = by_size[by_size["tau_status"] != "diverged"].dropna(subset="plateau_ratio")
    ours = mean_with_interval(swept.groupby("condition")["plateau_ratio"].mean(), len(swept))
    if ours.value is None:
        return ours, TOO_FEW, rule
    noisy = known.loc[known["label_noise"] > 0, "plateau_ratio"]
    note = f"peak before τ {swept['plateau_peak_ratio'].mean():.2f} log k"
    if len(noisy):
        note += f"; with label noise {noisy.min():.2f} to {noisy.max():.2f}"
    ours = replace(ours, note=note)
    if paper["low"] <= ours.value <= paper["high"]:
        return ours, REPRODUCED, rule
    return ours, OTHER_SIZE if 0.9 <= ours.value <= 1.1 else NOT_REPRODUCED, rule


def _forms_early(limit: int, known: pd.DataFrame) -> Answer:
    """Judge when log k is reached; where no evaluation fell in time, a run says nothing."""
    reached = known["plateau_reached_status"] == "observed"
    unseen = reached & (known["plateau_reached_after"] < limit) & (known["plateau_reached"] > limit)
    seen = known[~unseen]
    ours, verdict, rule = share_of(
        (seen["plateau_reached_status"] == "observed")
        & (seen["plateau_reached"] <= limit)
        & (seen["plateau_reached"] < seen["tau"] / 2),
        "within the steps named and before τ/2; of the runs with an evaluation on the plateau "
        "whose evaluations tell",
    )
    if unseen.any():
        ours = replace(ours, note=f"{ours.note}; {unseen.sum()} not evaluated in time to tell")
    return ours, verdict, rule


def _sharp(left: pd.DataFrame) -> Answer:
    """Judge runs that have left log k; some end before it is known how long that takes.

    Of those that are not sharp it is known sooner than of those that are, so that the share among
    the known ones says little: the verdict has to be the same however the others would end.
    """
    seen = left["end_status"] == "observed"
    took = left["end"].where(seen, left["last_step"]) - left["loss_onset"]
    sharp = took < left["loss_onset"]
    known = seen | ~sharp  # of an unfinished run it is known only that it was not sharp
    unknown = int((~known).sum())
    ours, verdict, rule = share_of(
        sharp[known],
        "from 0.9 to 0.1 log k in fewer steps than up to 0.9 log k; of the runs without label "
        "noise that show it",
    )
    rule += "; undecided if the others could change the verdict"
    if (known & ~sharp).any():
        slow = ", ".join(left.loc[known & ~sharp, "run"])
        ours = replace(ours, note=f"{ours.note}; not {slow}")
    if unknown:
        ours = replace(ours, note=f"{ours.note}; {unknown} ended before it was known")
        extremes = [judge_share([*sharp[known], *[value] * unknown])[1] for value in (False, True)]
        verdict = verdict if set(extremes) == {verdict} else CUT_SHORT
    return ours, verdict, rule


def _strict_marginal(runs: pd.DataFrame, structured: pd.DataFrame) -> Answer:
    def learned(some: pd.DataFrame) -> list[bool]:
        seen = (some["marginal_status"] == "observed") & (some["onset_status"] == "observed")
        return seen.tolist()

    ours, verdict, rule = share_of(
        learned(runs),
        "at some evaluation before the onset, joint loss near log k, mass on the fibre and B-gap "
        "large (transition.marginal_* in params.yaml)",
    )
    control = learned(structured)
    note = f"{ours.note}; with structured fibres, where it is easy to learn, {sum(control)} of "
    ours = replace(ours, note=f"{note}{len(control)}")
    rule += (
        "; undecided if the criterion is not met by half of the runs with structured fibres "
        "either, since then it may be too strict"
    )
    if verdict == NOT_REPRODUCED and control and sum(control) < len(control) / 2:
        verdict = OPEN
    return ours, verdict, rule
