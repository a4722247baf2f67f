"""Run the pipeline at a tenth of the paper's size, in a copy of its own: ``make quick``.

The copy, the folder ``quick``, has its own DVC workspace, so the results committed here stay as
they are. A second call continues where the first one stopped.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd

from mbc.runs import read_run_table
from mbc.runs_report import run_lines
from scripts.repro import parse_jobs, reproduce
from stages.files import read_yaml, write_yaml

COPY = Path("quick")
SOURCES = [
    *(".dvc/config", ".dvc/plots", ".dvcignore"),
    *("dvc.yaml", "mbc", "paper.yaml", "paper_waiting_times.yaml", "params.yaml"),
    *("scripts", "stages"),
]
CHANGES = {"scale": 0.1, "seeds": [42], "max_steps": 15_000}
"""What is different there; with the scale a run has at most 1,500 steps."""

MECHANISM_CHANGES = {"curvature_examples": 256, "noise_batches": 32}
"""The same under ``mechanism``: fewer examples leave larger errors, which the results state."""


def main() -> int:
    """Return the exit status of the pipeline."""
    jobs = parse_jobs(__doc__)
    _copy_sources()
    write_yaml(COPY / "params.yaml", with_changes(read_yaml(COPY / "params.yaml")))
    subprocess.run(["dvc", "config", "--quiet", "core.no_scm", "true"], cwd=COPY, check=True)
    os.chdir(COPY)
    status = reproduce(jobs)
    if status == 0:
        _print_results()
    return status


def with_changes(params: dict) -> dict:
    """Return the parameters as they are there."""
    mechanism = {**params["mechanism"], **MECHANISM_CHANGES}
    return {**params, **CHANGES, "mechanism": mechanism}


def _copy_sources() -> None:
    for source in SOURCES:
        target = COPY / source
        if Path(source).is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def _print_results() -> None:
    with pd.option_context("display.width", 200, "display.max_columns", None):
        table = run_lines(read_run_table(Path("metrics", "runs.csv")), {})
        print(table.to_string(index=False))
    print(f"\nReport:  {COPY / 'report.md'}\nFigures: {COPY / 'plots'}/*.png")


if __name__ == "__main__":
    sys.exit(main())
