"""Draw every figure, and write the table behind each beside it."""

import sys
from pathlib import Path

import pandas as pd

from mbc import figures
from mbc.conditions import parse
from mbc.runs import read_run_table, sweep_runs
from mbc.settings import Sweeps
from stages.files import read_json, read_yaml, refusing, write_text


def main(
    params_file: str,
    table_file: str,
    runs_folder: str,
    scaling_file: str,
    curve_file: str,
    plots_folder: str,
) -> None:
    """Write <plots>/<figure>.csv and <plots>/<figure>.png."""
    params = read_yaml(Path(params_file))
    sweeps = parse(Sweeps, params["sweeps"], "sweeps")
    table = read_run_table(table_file)
    table = table[table["tau_status"] != "undefined"]
    scaling = read_json(Path(scaling_file))
    plots = Path(plots_folder)
    by_size = sweep_runs(table, sweeps.dataset_size, params["scale"])
    fixed = sweep_runs(table, sweeps.fixed_size, params["scale"])

    curves = pd.concat(_history(runs_folder, run) for _, run in by_size.iterrows())
    curves = curves[["run", "k", "step", "candidate_loss"]]
    _write(plots, "loss_curves", curves, figures.loss_curves(curves))

    times = by_size[["run", "k", "dataset_size", "seed", "tau_after", "tau", "tau_status"]]
    curve = pd.read_csv(curve_file)
    figure = figures.waiting_times(times, curve, _exponent_text(scaling["dataset_size"]))
    _write(plots, "waiting_time", times, figure)

    columns = ["run", "k", "n_b", "nominal_size", "seed", "tau_after", "tau", "tau_status"]
    _write(plots, "fixed_size", fixed[columns], figures.fixed_size(fixed))

    exponents = pd.DataFrame(
        [_threshold_row(threshold, fit) for threshold, fit in scaling["thresholds"].items()],
        columns=["threshold", "exponent", "low", "high"],
    ).dropna(subset="exponent")
    _write(plots, "threshold_exponent", exponents, figures.threshold_exponents(exponents))

    base = table[table["condition"] == "base"].iloc[0]
    history = _history(runs_folder, base).drop(columns="run")
    moments = {
        name: base[column]
        for name, column in (("onset", "onset"), ("loss onset", "loss_onset"), ("τ", "tau"))
        if base[f"{column}_status"] == "observed"
    }
    _write(plots, "anatomy", history, figures.anatomy(history, base["k"], moments))


def _history(runs_folder: str, run: pd.Series) -> pd.DataFrame:
    history = pd.read_csv(Path(runs_folder, run["run"], "history.csv"))
    return history.assign(run=run["run"], k=run["k"])


def _exponent_text(fit: dict) -> str:
    if "bootstrap_interval" not in fit:
        return "power law"
    low, high = fit["bootstrap_interval"]
    return f"τ ∝ D^{fit['exponent']:.2f}  [{low:.2f}, {high:.2f}]"


def _threshold_row(threshold: str, fit: dict) -> dict:
    low, high = fit.get("bootstrap_interval", (None, None))
    row = {"threshold": float(threshold), "exponent": fit.get("exponent"), "low": low, "high": high}
    return row


def _write(plots: Path, name: str, table: pd.DataFrame, figure) -> None:
    write_text(plots / f"{name}.csv", table.to_csv(index=False))
    figures.save(figure, plots / f"{name}.png")


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
