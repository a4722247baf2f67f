"""Measure what gradient noise, direction, transfer and the controls do to the waiting time."""

import sys
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from mbc.censoring import censored_power_law, median_waiting_time, survival_curve
from mbc.conditions import parse
from mbc.effects import controls, directions, transfers, use_of_given
from mbc.runs import all_sweeps, read_run_table
from mbc.settings import NOISE_SWEEPS, ScalingSettings, Sweeps
from mbc.trends import monotone_effect
from stages.files import read_yaml, refusing, write_json, write_text


def main(
    params_file: str, table_file: str, runs_folder: str, metrics_file: str, survival_file: str
) -> None:
    """Write the effects, and the Kaplan-Meier curves of the sweeps of gradient noise."""
    params = read_yaml(Path(params_file))
    settings = parse(ScalingSettings, params["scaling"], "scaling")
    sweeps = parse(Sweeps, params["sweeps"], "sweeps")
    table = read_run_table(table_file)
    runs = all_sweeps(table, sweeps, params["scale"])
    resampling = {
        "confidence": settings.confidence,
        "resamples": settings.resamples,
        "seed": settings.bootstrap_seed,
    }
    results = {}
    curves = []
    for name, column in NOISE_SWEEPS.items():
        results[name] = {
            "steps": asdict(monotone_effect(runs[name], column, response="tau", **resampling)),
            "examples": asdict(
                monotone_effect(runs[name], column, response="tau_examples", **resampling)
            ),
        }
        if (runs[name][column] > 0).all():  # a power of a noise of 0 means nothing
            fit = censored_power_law(runs[name], column, confidence=settings.confidence)
            results[name]["censored_power_law"] = asdict(fit)
        medians = results[name]["median_tau"] = []
        for value, group in runs[name].groupby(column):
            curve = survival_curve(group, confidence=settings.confidence)
            medians.append({"value": value, "median_tau": median_waiting_time(curve)})
            curves.append(curve.assign(sweep=name, value=value, n_runs=len(group)))
    for moment in ("tau", "character_tau"):
        results[f"direction_by_{moment}"] = [
            asdict(ratio) for ratio in directions(runs["direction"], moment)
        ]
        results[f"transfer_by_{moment}"] = [asdict(ratio) for ratio in transfers(table, moment)]
    forward = runs["direction"][runs["direction"]["direction"] == "forward"]
    histories = {
        run: pd.read_csv(Path(runs_folder, run, "history.csv"))
        for run in forward.loc[forward["character_tau_status"] == "observed", "run"]
    }
    results["forward_use"] = [asdict(use) for use in use_of_given(forward, histories)]
    results["linear"] = controls(runs["linear"], "network", "linear")
    results["structured"] = controls(runs["structured"], "fibre", "structured")
    results["schedule"] = controls(runs["schedule"], "schedule", "cosine")
    results["initialisation"] = controls(runs["initialisation"], "initialisation", "scaled")
    write_json(Path(metrics_file), results)
    write_text(Path(survival_file), pd.concat(curves).to_csv(index=False))


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
