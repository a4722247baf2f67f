"""Draw every figure, and write the table behind each beside it."""

import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from mbc import (
    curvature_figures,
    experiment_figures,
    figures,
    heads_figures,
    mechanism_figures,
)
from mbc.conditions import parse
from mbc.paper_times import with_paper_tau
from mbc.runs import RANDOM_WEIGHTS, all_sweeps, read_run_table, transition_first
from mbc.settings import NOISE_SWEEPS, Sweeps
from stages.files import read_json, read_yaml, refusing, write_text
from stages.tables import read_tables

HISTORY_COLUMNS = ["step", "candidate_loss", "loss_character_1", "joint_loss", "fibre_mass"]
HISTORY_COLUMNS += ["z_gap", "b_gap"]

MOMENT_COLUMNS = ["tau_after", "tau", "tau_examples", "tau_status"]


def main(
    params_file: str,
    table_file: str,
    runs_folder: str,
    scaling_file: str,
    curve_file: str,
    survival_file: str,
    mechanism_folder: str,
    paper_times_file: str,
    plots_folder: str,
) -> None:
    """Write <plots>/<figure>.csv and <plots>/<figure>.png for every experiment that has runs."""
    params = read_yaml(Path(params_file))
    sweeps = parse(Sweeps, params["sweeps"], "sweeps")
    everything = read_run_table(table_file)
    table = _with_tau(everything)
    # sweeps are asked of the whole table: base belongs to each, whether or not it has a tau
    every_sweep = all_sweeps(everything, sweeps, params["scale"])
    # the paper's times are for scale 1
    paper_times = read_yaml(Path(paper_times_file)) if params["scale"] == 1 else {}
    runs = {
        name: with_paper_tau(_with_tau(sweep), paper_times.get(name, {}))
        for name, sweep in every_sweep.items()
    }
    scaling = read_json(Path(scaling_file))
    plots = Path(plots_folder)
    _scaling_figures(plots, runs, scaling, pd.read_csv(curve_file), runs_folder)
    _noise_figures(plots, runs, pd.read_csv(survival_file))
    _direction_figure(plots, runs["direction"], table)
    _control_figures(plots, runs, runs_folder)
    _mechanism_figures(plots, read_tables(Path(mechanism_folder)))
    of_base = transition_first(table[table["condition"] == "base"])
    for _, base in of_base.head(1).iterrows():
        _anatomy(plots, base, runs_folder)


def _with_tau(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs but those whose tau is undefined, since their k is 1."""
    return runs[runs["tau_status"] != "undefined"]


def _scaling_figures(
    plots: Path, runs: dict, scaling: dict, curve: pd.DataFrame, runs_folder: str
) -> None:
    by_size, fixed = runs["dataset_size"], runs["fixed_size"]
    curves = _histories(by_size, runs_folder)[["run", "k", "step", "candidate_loss"]]
    _write(plots, "loss_curves", curves, figures.loss_curves)

    times = by_size[["run", "k", "dataset_size", "seed", *MOMENT_COLUMNS, "paper_tau"]]
    text = _exponent_text(scaling["dataset_size"])
    law = {"curve": curve, "exponent_text": text, "confidence": scaling["confidence"]}
    _write(plots, "waiting_time", times, partial(figures.waiting_times, **law))

    moments = [f"{name}{end}" for name in experiment_figures.CASCADE for end in ("", "_status")]
    cascade = by_size[["run", "k", "seed", *moments, "lead_fraction", "lead_fraction_string"]]
    _write(plots, "cascade", cascade, experiment_figures.cascade)

    columns = ["run", "k", "n_b", "nominal_size", "seed", *MOMENT_COLUMNS, "paper_tau"]
    _write(plots, "fixed_size", fixed[columns], figures.fixed_size)

    exponents = pd.DataFrame(
        [_threshold_row(threshold, fit) for threshold, fit in scaling["thresholds"].items()],
        columns=["threshold", "exponent", "low", "high"],
    ).dropna(subset="exponent")
    draw = partial(figures.threshold_exponents, confidence=scaling["confidence"])
    _write(plots, "threshold_exponent", exponents, draw)


def _noise_figures(plots: Path, runs: dict, survival: pd.DataFrame) -> None:
    titles = ("batch size (examples)", "learning rate", "label noise (probability)")
    for (name, column), title in zip(NOISE_SWEEPS.items(), titles, strict=True):
        columns = ["run", column, "seed", *MOMENT_COLUMNS, "paper_tau", "paper_tau_examples"]
        times = runs[name][columns]
        if times[column].nunique() < 2:
            continue
        logarithmic = name != "label_noise"
        draw = partial(experiment_figures.effect, x=column, name=title, logarithmic=logarithmic)
        _write(plots, name, times, draw)
    values = survival.groupby("sweep")["value"].nunique()
    ended = set(survival.loc[survival["step"] > 0, "sweep"])  # not those where all runs diverged
    compared = [
        name for name in ("batch_size", "learning_rate") if name in ended and values[name] > 1
    ]
    curves = survival[survival["sweep"].isin(compared)]
    _write(plots, "survival", curves, experiment_figures.survival)


def _direction_figure(plots: Path, sweep: pd.DataFrame, table: pd.DataFrame) -> None:
    transfers = table[table["start_from"] != RANDOM_WEIGHTS].assign(paper_tau=math.nan)
    forward = sweep[sweep["direction"] == "forward"]
    backward = sweep[(sweep["direction"] == "backward") & sweep["k"].isin(forward["k"])]
    kinds = {"backward": backward, "forward": forward, "backward after forward": transfers}
    times = pd.concat([runs.assign(kind=kind) for kind, runs in kinds.items()])
    columns = ["tau", "tau_status", "character_tau", "character_tau_status"]
    times = times[["run", "kind", "k", "seed", *columns, "paper_tau"]]
    _write(plots, "direction", times, experiment_figures.directions)


def _control_figures(plots: Path, runs: dict, runs_folder: str) -> None:
    for name, key, loss, draw in (
        ("linear", "network", "candidate_loss", experiment_figures.linear),
        ("structured", "fibre", "loss_character_1", experiment_figures.structured),
    ):
        sweep = runs[name]
        compared = sweep[sweep["k"].isin(sweep[sweep[key] == name]["k"])]
        curves = _histories(compared, runs_folder, key, "log_k")
        curves = curves.assign(ratio=curves[loss] / curves["log_k"])
        _write(plots, name, curves[["run", "k", key, "ratio", *HISTORY_COLUMNS]], draw)


def _mechanism_figures(plots: Path, tables: dict[str, pd.DataFrame]) -> None:
    ablated = tables["heads"].rename(columns={"candidate_loss_rise": "rise"})
    for name, ablation in (("heads", "zero"), ("heads_mean", "mean")):
        draw = partial(heads_figures.heads, ablation=ablation)
        _write(plots, name, ablated[ablated["ablation"] == ablation], draw)
    for name, of_name, draw in (
        ("groups", tables["groups"], mechanism_figures.groups),
        ("displacement", tables["displacement"], mechanism_figures.displacement),
        ("attention", tables["attention"], heads_figures.attention_to_z),
        ("curvature", tables["curvature"], curvature_figures.curvature),
        ("gradient_noise", tables["noise_shares"], curvature_figures.gradient_noise),
    ):
        _write(plots, name, of_name, draw)


def _anatomy(plots: Path, base: pd.Series, runs_folder: str) -> None:
    history = pd.read_csv(Path(runs_folder, base["run"], "history.csv"))
    moments = {
        name: base[column]
        for column, name in (
            ("onset_string", "onset (whole answer)"),
            ("onset", "onset (first character)"),
            ("loss_onset", "loss onset"),
            ("tau", "waiting time τ"),
        )
        if base[f"{column}_status"] == "observed"
    }
    _write(plots, "anatomy", history, partial(figures.anatomy, k=base["k"], moments=moments))


def _histories(runs: pd.DataFrame, runs_folder: str, *columns: str) -> pd.DataFrame:
    """Return the histories of runs one below the other, with columns of the table of runs."""
    if runs.empty:
        return pd.DataFrame(columns=[*HISTORY_COLUMNS, "run", "k", *columns])
    parts = []
    for _, run in runs.iterrows():
        history = pd.read_csv(Path(runs_folder, run["run"], "history.csv"))
        parts.append(history.assign(**{name: run[name] for name in ("run", "k", *columns)}))
    return pd.concat(parts, ignore_index=True)


def _exponent_text(fit: dict) -> str:
    if "bootstrap_interval" not in fit:
        return "power law"
    low, high = fit["bootstrap_interval"]
    text = f"τ ∝ D^{fit['exponent']:.2f}  [{low:.2f}, {high:.2f}]"
    if left_out := fit["n_left_out"]:  # the slowest runs: without them the exponent is too small
        text += f"\n{left_out} of {fit['n_runs'] + left_out} runs without a transition left out"
    return text


def _threshold_row(threshold: str, fit: dict) -> dict:
    low, high = fit.get("bootstrap_interval", (None, None))
    row = {"threshold": float(threshold), "exponent": fit.get("exponent"), "low": low, "high": high}
    return row


def _write(
    plots: Path, name: str, table: pd.DataFrame, draw: Callable[[pd.DataFrame], figures.Figure]
) -> None:
    """Write a figure and its table; a figure of an experiment without runs is left out."""
    if not table.empty:
        write_text(plots / f"{name}.csv", table.to_csv(index=False))
        figures.save(draw(table), plots / f"{name}.png")


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
