"""Tables of what was found inside the followed runs, one row a measurement, from their results."""

from dataclasses import fields

import pandas as pd

from mbc.curvature import SampleCurvature
from mbc.gradient_noise import NoiseShare, NoiseSize
from mbc.group_curves import GroupCurvePoint, GroupTransition
from mbc.heads import HeadEffect, Leading

Results = dict[str, dict]
"""For each run the content of its metrics file; a run that diverged has a statement in place of
measurements, and no row in any table."""


def group_curves(results: Results) -> pd.DataFrame:
    """Return a row for each run and checkpoint: `mbc.group_curves.GroupCurvePoint`."""
    rows = [
        {"run": run, "k": found["k"], **point}
        for run, found in _measured(results)
        for point in found["curve"]
    ]
    return _table(rows, "run", "k", GroupCurvePoint)


def group_transitions(results: Results) -> pd.DataFrame:
    """Return a row for each run: `mbc.group_curves.GroupTransition`."""
    rows = [
        {"run": run, "k": found["k"], **found["transition"]} for run, found in _measured(results)
    ]
    return _table(rows, "run", "k", GroupTransition)


def displacements(results: Results) -> pd.DataFrame:
    """Return a row for each run, pair of consecutive displacements and component."""
    rows = [
        {
            **{"run": run, "k": found["k"], "component": component, "cosine": cosine},
            **{name: turn.get(name) for name in ("fraction", "phase", "fresh", "permuted")},
        }
        for run, found in _measured(results)
        for turn in found["displacements"]
        for component, cosine in turn["cosines"].items()
    ]
    columns = ("run", "k", "fraction", "phase", "component", "cosine", "fresh", "permuted")
    return _table(rows, *columns)


def head_effects(results: Results) -> pd.DataFrame:
    """Return a row for each run, phase, kind of ablation and head: `mbc.heads.HeadEffect`.

    ``leading`` says whether the head leads, ``verdict`` whether one does.
    """
    rows = []
    for run, phase, kind, found in _ablations(results):
        leading = found[kind]["leading"]
        for effect in found[kind]["without"]:
            leads = (effect["layer"], effect["head"]) == (leading.get("layer"), leading.get("head"))
            where = {"run": run, "k": results[run]["k"], "phase": phase, "step": found["step"]}
            outcome = {"verdict": leading["verdict"], "leading": leads}
            rows.append({**where, "ablation": kind, **effect, **outcome})
    columns = ("run", "k", "phase", "step", "ablation", HeadEffect, "verdict", "leading")
    return _table(rows, *columns)


def leading_heads(results: Results) -> pd.DataFrame:
    """Return a row for each run, phase and kind of ablation: `mbc.heads.Leading`.

    ``tied`` becomes text: the heads that tie, the largest rise first.
    """
    rows = []
    for run, phase, kind, found in _ablations(results):
        leading = found[kind]["leading"]
        tied = " ".join(f"L{layer}H{head}" for layer, head in leading["tied"])
        where = {"run": run, "k": results[run]["k"], "phase": phase, "step": found["step"]}
        rows.append({**where, "ablation": kind, **leading, "tied": tied})
    return _table(rows, "run", "k", "phase", "step", "ablation", Leading)


def attention(results: Results) -> pd.DataFrame:
    """Return a row for each run, checkpoint and head: attention from the answer to z."""
    rows = [
        {
            **{"run": run, "k": found["k"], "step": moment["step"], "fraction": moment["fraction"]},
            **{"layer": head["layer"], "head": head["head"]},
            **{"attention": head["mean"], "uniform": moment["uniform_mean"]},
        }
        for run, found in _measured(results)
        for moment in found["attention"]
        for head in moment["heads"]
    ]
    return _table(rows, "run", "k", "step", "fraction", "layer", "head", "attention", "uniform")


def curvature(results: Results) -> pd.DataFrame:
    """Return a row for each run, phase and sample: `SampleCurvature` and what both samples show."""
    shared = ("spread", "transferred", "negative", "anisotropy", "anisotropy_at_least")
    rows = []
    for run, found in _measured(results):
        for phase, of_phase in found["phases"].items():
            where = {"run": run, "k": found["k"], "phase": phase, "step": of_phase["step"]}
            both = {name: of_phase.get(name) for name in shared}
            rows += [
                {**where, "sample": sample, **of_phase[sample], **both}
                for sample in ("first", "second")
            ]
    return _table(rows, "run", "k", "phase", "step", "sample", SampleCurvature, *shared)


def noise_shares(results: Results) -> pd.DataFrame:
    """Return a row for each run, batch size and direction: `mbc.gradient_noise.NoiseShare`."""
    rows = [
        {"run": run, "k": found["k"], "lr": found["lr"], **share}
        for run, found in _measured(results)
        for share in found["shares"]
    ]
    return _table(rows, "run", "k", "lr", NoiseShare)


def noise_sizes(results: Results) -> pd.DataFrame:
    """Return a row for each run and batch size: `mbc.gradient_noise.NoiseSize`."""
    rows = [
        {"run": run, "k": found["k"], "lr": found["lr"], **size}
        for run, found in _measured(results)
        for size in found["sizes"]
    ]
    return _table(rows, "run", "k", "lr", NoiseSize)


def _measured(results: Results):
    return ((run, found) for run, found in results.items() if "statement" not in found)


def _ablations(results: Results):
    for run, found in _measured(results):
        for phase, of_phase in found["phases"].items():
            for kind in ("zero", "mean"):
                yield run, phase, kind, of_phase


def _table(rows: list[dict], *columns) -> pd.DataFrame:
    """Return rows with columns by name and by the fields of dataclasses; None left out is NaN."""
    names = []
    for column in columns:
        names += [column] if isinstance(column, str) else [field.name for field in fields(column)]
    return pd.DataFrame(rows).reindex(columns=names)
