"""Remove what params.yaml no longer names: ``make prune``.

DVC keeps the folders of runs whose condition or seed was removed, and they change the hash of the
folder that later stages read.
"""

import shutil
import sys
from pathlib import Path

from mbc.runs import planned_runs
from stages.files import read_yaml

RUNS = Path("data/runs")


def left_overs(runs_folder: Path, params: dict) -> list[Path]:
    """Return the entries of the folder of runs that belong to no condition and seed."""
    runs = planned_runs(params["conditions"], params["transfers"], params["seeds"])
    named = {run.name for run in runs}
    return sorted(path for path in runs_folder.glob("*") if path.name not in named)


def main() -> None:
    """Remove them, saying which."""
    for path in left_overs(RUNS, read_yaml(Path("params.yaml"))):
        print(f"Removing {path}")
        shutil.rmtree(path) if path.is_dir() else path.unlink()


if __name__ == "__main__":
    sys.exit(main())
