"""Fit how the waiting time grows with dataset size, and whether k matters at fixed size."""

import sys
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import pandas as pd

from mbc.censoring import censored_power_law
from mbc.conditions import parse, run_name
from mbc.laws import compare_laws, leave_one_out, mixed_model
from mbc.runs import read_run_table, sweep_runs
from mbc.scaling import equivalence, power_law, power_law_curve
from mbc.settings import ScalingSettings, Sweeps
from mbc.transitions import waiting_time
from stages.files import read_yaml, refusing, write_json, write_text


def main(
    params_file: str, table_file: str, runs_folder: str, metrics_file: str, curve_file: str
) -> None:
    """Write the fits of all sweeps, and the curve of tau in D with its band."""
    params = read_yaml(Path(params_file))
    settings = parse(ScalingSettings, params["scaling"], "scaling")
    sweeps = parse(Sweeps, params["sweeps"], "sweeps")
    table = read_run_table(table_file)
    fitting = {
        "confidence": settings.confidence,
        "resamples": settings.resamples,
        "seed": settings.bootstrap_seed,
    }

    by_size = sweep_runs(table, sweeps.dataset_size, params["scale"])
    fixed = sweep_runs(table, sweeps.fixed_size, params["scale"])
    margin = settings.equivalence_margin
    confidence = settings.confidence
    left_out = leave_one_out(by_size, "dataset_size")
    results = {
        "versions": {name: version(name) for name in ("statsmodels", "scipy", "pandas", "numpy")},
        "confidence": confidence,
        "dataset_size": {
            **asdict(power_law(by_size, "dataset_size", **fitting)),
            "censored": asdict(censored_power_law(by_size, "dataset_size", confidence=confidence)),
            "mixed_model": asdict(mixed_model(by_size, "dataset_size", confidence=confidence)),
            "leave_one_out": left_out,
            "laws": asdict(compare_laws(by_size, "dataset_size")),
        },
        "thresholds": {
            str(threshold): asdict(
                power_law(_at_threshold(by_size, runs_folder, threshold), "dataset_size", **fitting)
            )
            for threshold in settings.thresholds
        },
        "fixed_size": {
            str(size): {
                **asdict(power_law(runs, "k", **fitting)),
                "equivalence": asdict(equivalence(runs, "k", margin)),
            }
            for size, runs in fixed.groupby(fixed["nominal_size"].round().astype(int))
        },
    }
    write_json(Path(metrics_file), results)
    curve = power_law_curve(by_size, "dataset_size", **fitting)
    write_text(Path(curve_file), curve.to_csv(index=False))


def _at_threshold(runs: pd.DataFrame, runs_folder: str, threshold: float) -> pd.DataFrame:
    """Return the runs with tau read off at another fraction of log k."""
    runs = runs[runs["tau_status"] != "undefined"].copy()
    for index, run in runs.iterrows():
        name = run_name(run["condition"], run["seed"])
        moment = waiting_time(
            pd.read_csv(Path(runs_folder, name, "history.csv")), run["k"], threshold
        )
        lost = "diverged" if run["run_status"] == "diverged" else "censored"
        runs.loc[index, "tau"] = moment.step
        runs.loc[index, "tau_status"] = "observed" if moment.observed else lost
    return runs


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
