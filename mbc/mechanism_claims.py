"""Which number answers which claim about what goes on inside a run: one short function a claim."""

import math
from dataclasses import replace

import pandas as pd

from mbc.checkpoints import at_fraction
from mbc.claims import (
    CUT_SHORT,
    NOT_REPRODUCED,
    NOT_RUN,
    OPEN,
    OTHER_SIZE,
    REPRODUCED,
    TOO_FEW,
    VERDICTS,
    Answer,
    Measured,
    judge_share,
    judge_size,
    mean_with_interval,
    number_text,
    share_of,
)

BEYOND_ITEMS = 0.1
"""Groups are solved as wholes only if their share is this much above that of items learned singly:
about twice the sampling error of the share of 200 groups."""

Tables = dict[str, pd.DataFrame]
"""The tables of `mbc.mechanism` by name."""


def judge_mechanism(paper: dict, tables: Tables, runs: pd.DataFrame) -> dict[str, Answer]:
    """Return answers to the claims of sections 3.3, 4 and 6 of the paper by name.

    Args:
        paper: for each claim its section, words and number.
        tables: of `mbc.mechanism`.
        runs: the table of runs, by the run's name.
    """
    curvatures = _downward(tables["curvature"], "plateau")
    return {
        "groups_at_half_tau": _half_tau(tables["groups"], tables["group_transitions"]),
        **{
            f"{name}_{k}": answer(paper[f"{name}_{k}"], k, tables["groups"])
            for name, answer in (
                ("group_accuracy_at_half_tau", _accuracy_at_half_tau),
                ("groups_after_tau", _after_tau),
            )
            for k in (10, 20)
        },
        **{
            f"transition_width_{k}": _width(
                paper[f"transition_width_{k}"], k, tables["group_transitions"], tables["groups"]
            )
            for k in (10, 20)
        },
        "collective": _collective(tables["group_transitions"], tables["groups"]),
        "leading_head": _leading_head(tables["leading_heads"], "transition", "τ"),
        "leading_head_on_plateau": _leading_head(tables["leading_heads"], "plateau", "τ/2"),
        "saddle": _saddle(curvatures),
        "anisotropy": _anisotropy(paper["anisotropy"], curvatures),
        "minimum_at_end": _minimum(_downward(tables["curvature"], "end"), runs["end_status"]),
        "noise_alignment": _noise_alignment(tables["noise_shares"]),
        "coherence": _coherence(paper["coherence"], tables["displacement"], runs["condition"]),
    }


def _half_tau(curves: pd.DataFrame, transitions: pd.DataFrame) -> Answer:
    unsolved = at_fraction(curves, 0.5)["share_solved"] == 0
    ours, verdict, rule = share_of(unsolved, "no group at 80% or more")
    counts = [f"{row['run']}: {row['n_groups']} groups" for _, row in transitions.iterrows()]
    return _noted(ours, counts), verdict, rule


def _accuracy_at_half_tau(paper: dict, k: int, curves: pd.DataFrame) -> Answer:
    points = at_fraction(curves, 0.5)
    points = points[points["k"] == k]
    ours = mean_with_interval(points["mean_accuracy"], len(points))
    verdict, rule = judge_size(ours, paper, 1 / k)
    return ours, verdict if len(points) else NOT_RUN, rule


def _after_tau(paper: dict, k: int, curves: pd.DataFrame) -> Answer:
    rule = (
        "reproduced if the mean share is the paper's less 0.03 or more; in its direction only "
        "above a half; undecided where fewer than 3 seeds have different verdicts each by itself"
    )

    def grade(share: float) -> str:
        if share >= paper["value"] - 0.03:
            return REPRODUCED
        return OTHER_SIZE if share > 0.5 else NOT_REPRODUCED

    points = at_fraction(curves, 1.5)
    points = points[points["k"] == k]
    ours = mean_with_interval(points["share_solved"], len(points))
    if ours.value is None:
        return ours, NOT_RUN, rule
    ours = _noted(ours, [f"{p['run']}: {p['share_solved']:.1%}" for _, p in points.iterrows()])
    if len(points) < 3 and points["share_solved"].map(grade).nunique() > 1:
        return ours, TOO_FEW, rule
    return ours, grade(ours.value), rule


def _width(paper: dict, k: int, transitions: pd.DataFrame, curves: pd.DataFrame) -> Answer:
    rule = (
        "steps from the last checkpoint with fewer than 5% of the groups solved to the first with "
        "more than 80%, over τ: reproduced from half to 1.5 times the paper's, else in its "
        "direction only below 1; a run without such an end counts from its last checkpoint, and "
        "then the mean is a bound"
    )
    last = curves.groupby("run")[["step", "fraction"]].last()
    widths, notes, bound = [], [], None
    for _, run in transitions[transitions["k"] == k].iterrows():
        width = run["width_over_tau"]
        if pd.isna(width) and pd.notna(run["start"]):
            step, fraction = last.loc[run["run"]]
            width, bound = fraction * (1 - run["start"] / step), "at least"
            notes.append(f"{run['run']}: at least {width:.2f}")
        elif pd.notna(width):
            notes.append(f"{run['run']}: {width:.2f}")
        widths.append(width)
    ours = mean_with_interval(pd.Series(widths, dtype=float))
    if ours.value is None:
        return ours, NOT_RUN, rule
    wide = ours.value > 1.5 * paper["value"]
    if bound is not None:
        ours = Measured(ours.value, n_runs=ours.n_runs, note="; ".join(notes), bound=bound)
        return ours, NOT_REPRODUCED if ours.value >= 1 else CUT_SHORT, rule
    ours = _noted(ours, notes)
    if ours.value >= 0.5 * paper["value"] and not wide:
        return ours, REPRODUCED, rule
    return ours, OTHER_SIZE if ours.value < 1 else NOT_REPRODUCED, rule


def _collective(transitions: pd.DataFrame, curves: pd.DataFrame) -> Answer:
    """Judge against groups that wait by themselves, and say how far items learned singly go."""
    known = transitions.dropna(subset="collective")
    ours, verdict, rule = share_of(
        known["collective"],
        "width below that of groups that wait independently, without memory, equally long on "
        "average (independent groups whose waits vary as little as the note says would do as "
        "well); undecided where the share of solved groups exceeds that of items learned singly by "
        f"{BEYOND_ITEMS:g} at no checkpoint, since these would then do as well, or where a run is "
        "not finished",
    )
    notes = [
        f"{run['run']}: coefficient of variation {run['width_as_cv']:.2f}"
        for _, run in known.iterrows()
    ]
    unfinished = transitions[transitions["collective"].isna()]["run"].tolist()
    notes += [f"{run}: not finished" for run in unfinished]
    beyond = curves["share_solved"] - curves["independent_share_solved"]
    beyond = beyond.groupby(curves["run"], sort=False).max()
    notes += [
        f"{run}: share of solved groups at most {gap:.2f} above that of items learned singly"
        for run, gap in beyond.items()
    ]
    if verdict == REPRODUCED and (beyond < BEYOND_ITEMS).any():
        verdict = OPEN
    elif verdict == REPRODUCED and unfinished:
        verdict = CUT_SHORT
    return _noted(ours, notes), verdict, rule


def _leading_head(leading: pd.DataFrame, phase: str, when: str) -> Answer:
    """Judge in one phase, by zero ablation as the paper does and by mean ablation."""
    chosen = leading[leading["phase"] == phase]
    holds, names = {}, []
    for kind in ("zero", "mean"):
        of_kind = chosen[chosen["ablation"] == kind]
        holds[kind] = [value is True or value == "True" for value in of_kind["in_first_layer"]]
        names += [
            f"{run['run']}, {kind}: L{int(run['layer'])}H{int(run['head'])}, {run['rise']:.2f} "
            f"nats, the next {run['second_rise']:.2f}"
            if run["verdict"] == "leader"
            else f"{run['run']}, {kind}: {run['verdict']}"
            for _, run in of_kind.iterrows()
        ]
    criterion = f"one first-layer head raises the loss more than every other when zeroed at {when}"
    ours, verdict, rule = share_of(holds["zero"], criterion)
    if VERDICTS.index(verdict) < VERDICTS.index(judge_share(holds["mean"])[1]):
        verdict = OPEN
    rule += "; undecided where it holds in fewer runs when heads are set to their mean"
    return _noted(ours, names), verdict, rule


def _downward(curvatures: pd.DataFrame, phase: str) -> pd.DataFrame:
    """Return for each followed run what the smallest eigenvalue in a phase can be.

    That of a sample is too low as an estimate, since its direction was chosen on the sample. So it
    counts as negative only if that direction curves downward on other examples, too
    (`mbc.curvature.Curvature.negative`).

    Returns:
        Columns ``run``, ``largest`` and ``smallest`` (means of two samples), ``transferred``: the
        curvature along the first sample's direction on the second, ``downward``: whether it is
        negative, ``open``: whether only the samples' smallest eigenvalue is.
    """
    rows = []
    for run, of_run in curvatures[curvatures["phase"] == phase].groupby("run"):
        first, smallest = of_run.iloc[0], of_run["smallest"].mean()
        error = (of_run["smallest_residual"] + of_run["rounding"]).max()
        rows.append(
            {
                **{"run": run, "largest": of_run["largest"].mean(), "smallest": smallest},
                **{"transferred": first["transferred"], "downward": bool(first["negative"])},
                "open": not first["negative"] and smallest < -error,
            }
        )
    columns = ["run", "largest", "smallest", "transferred", "downward", "open"]
    return pd.DataFrame(rows, columns=columns).astype({"downward": bool, "open": bool})


def _saddle(plateau: pd.DataFrame) -> Answer:
    ours, verdict, rule = share_of(
        plateau["downward"],
        "below 0 beyond its errors on two samples of examples, and the direction that the first "
        "chose curves downward on the second, too; undecided if it does not",
    )
    if verdict != REPRODUCED and plateau["open"].any():
        verdict = OPEN
    return _noted(ours, _eigenvalues(plateau)), verdict, rule


def _eigenvalues(found: pd.DataFrame) -> list[str]:
    return [
        f"{run['run']}: {run['smallest']:.2g} on the samples, {run['transferred']:.2g} along that "
        "direction on other examples"
        for _, run in found.iterrows()
    ]


def _minimum(ends: pd.DataFrame, end_status: pd.Series) -> Answer:
    converged = ends[(ends["run"].map(end_status) == "observed").astype(bool)]
    ours, verdict, rule = share_of(
        ~converged["downward"] & ~converged["open"],
        "not below 0 beyond its errors on two samples, at the last checkpoint of the runs that "
        "came below 0.1 log k; undecided if their direction does not curve downward on other "
        "examples, or if no run came so far",
    )
    if verdict == NOT_RUN and len(ends):
        verdict = CUT_SHORT
    elif verdict != REPRODUCED and converged["open"].any():
        verdict = OPEN
    return _noted(ours, _eigenvalues(converged)), verdict, rule


def _anisotropy(paper: dict, plateau: pd.DataFrame) -> Answer:
    rule = (
        "largest over smallest in size on the plateau, which lies between the ratio to the "
        "samples' smallest and that to the curvature along its direction on other examples: "
        f"reproduced if all of the range is at {paper['value']:g} or more, in its direction only "
        "if it lies between 10 and that, not reproduced if below 10, else undecided"
    )
    if plateau.empty:
        return Measured(None), NOT_RUN, rule
    least = plateau["largest"] / plateau["smallest"].abs()
    most = (plateau["largest"] / -plateau["transferred"]).where(plateau["downward"], math.inf)
    notes = [
        f"{run}: {low:.3g} to {high:.3g}" if math.isfinite(high) else f"{run}: {low:.3g} or more"
        for run, low, high in zip(plateau["run"], least, most, strict=True)
    ]
    ours = Measured(least.mean(), n_runs=len(plateau), note="; ".join(notes), bound="at least")
    if least.min() >= paper["value"]:
        return ours, REPRODUCED, rule
    if most.max() < 10:
        return ours, NOT_REPRODUCED, rule
    inside = least.min() >= 10 and most.max() < paper["value"]
    return ours, OTHER_SIZE if inside else OPEN, rule


def _noise_alignment(shares: pd.DataFrame) -> Answer:
    """Judge at each run's largest batch size: the share along the largest against the smallest."""
    criterion = (
        "the share of the noise along the largest eigenvalue's direction is above that of noise "
        "without direction, and above that along the smallest eigenvalue's, by their intervals; in "
        "its direction only unless the three largest hold more than half of the noise in most runs"
    )
    holds, most, notes = [], [], []
    for run, of_run in shares.groupby("run"):
        chosen = of_run[of_run["batch_size"] == of_run["batch_size"].max()].set_index("direction")
        top, bottom = chosen.loc["largest 1"], chosen.loc["smallest"]
        holds.append(bool(top["low"] > max(1, bottom["high"])))
        upper = chosen[chosen.index.str.startswith("largest")]["share"].sum()
        most.append(upper > 0.5)
        notes.append(
            f"{run}: {number_text(top['share_over_isotropic'])} against "
            f"{number_text(bottom['share_over_isotropic'])} times the isotropic share, "
            f"three largest {upper:.1%} of all"
        )
    ours, verdict, rule = share_of(holds, criterion)
    if verdict == REPRODUCED and sum(most) <= len(most) / 2:
        verdict = OTHER_SIZE
    return _noted(ours, notes), verdict, rule


def _coherence(paper: dict, turns: pd.DataFrame, conditions: pd.Series) -> Answer:
    rule = (
        "mean cosine of the whole network near τ, beside that on the plateau: reproduced if the "
        "plateau's is less than 0.2 above a random walk's and that near τ within 25% of the "
        "paper's; in its direction only if it is larger near τ"
    )
    whole = turns[turns["component"] == "whole"]
    means = {
        phase: mean_with_interval(
            of_phase["cosine"].groupby(of_phase["run"].map(conditions)).mean(),
            of_phase["run"].nunique(),
        )
        for phase, of_phase in whole.groupby("phase")
    }
    if not {"plateau", "transition"} <= set(means):
        return Measured(None, note="a phase has no two displacements"), NOT_RUN, rule
    plateau, ours = means["plateau"], means["transition"]
    walk = whole[whole["phase"] == "plateau"]["fresh"].mean()
    notes = [f"plateau: {plateau.value:.2f}", f"random walk: {walk:.2f}"]
    near = turns[(turns["component"] == "unembedding") & (turns["phase"] == "transition")]
    if not near.empty:
        notes.append(f"unembedding alone near τ: {near['cosine'].mean():.2f}")
    ours = _noted(ours, notes)
    if plateau.value - walk < 0.2 and abs(ours.value / paper["value"] - 1) <= 0.25:
        return ours, REPRODUCED, rule
    return ours, OTHER_SIZE if ours.value > plateau.value else NOT_REPRODUCED, rule


def _noted(ours: Measured, notes: list[str]) -> Measured:
    return replace(ours, note="; ".join(notes))
