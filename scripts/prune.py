"""Remove what params.yaml no longer names: ``make prune``.

DVC keeps the results of runs whose condition or seed was removed, and they change the hash of the
folders that later stages read.
"""

import shutil
from pathlib import Path

from mbc.conditions import run_name
from mbc.resolution import resolve_parameters
from mbc.runs import planned_runs
from scripts.repro import ANALYSES, LOGS, log_of
from stages.files import read_yaml, refusing

FOLLOWED_BY = dict.fromkeys(ANALYSES, "conditions") | {"gradient_noise": "gradient_noise"}
"""For each analysis the parameter in the section ``mechanism`` that lists its conditions."""


def left_overs(folder: Path, params: dict) -> list[Path]:
    """Return the files and folders of runs and analyses that the parameters do not name.

    Args:
        folder: the project's.
        params: as in params.yaml.

    Raises:
        ValueError: if a parameter is wrong; it may then name too few runs.
    """
    resolve_parameters(params)
    seeds, mechanism = params["seeds"], params["mechanism"]
    runs = planned_runs(params["conditions"], params["transfers"], seeds)
    analysed = {
        analysis: [run_name(name, seed) for name in mechanism[key] for seed in seeds]
        for analysis, key in FOLLOWED_BY.items()
    }
    stages = [run.stage for run in runs]
    stages += [f"{analysis}@{run}" for analysis, found in analysed.items() for run in found]
    names = {run.name for run in runs}
    named = {
        **{Path("data/runs"): names, Path("data/weights"): names},
        LOGS: names | {log_of(stage).name for stage in stages},
        **{Path("metrics", key): {f"{run}.json" for run in analysed[key]} for key in analysed},
    }
    return sorted(
        path
        for place, kept in named.items()
        for path in (folder / place).glob("*")
        if path.name not in kept and path.name != ".gitignore"  # DVC keeps one beside weights
    )


def main() -> None:
    """Remove them, saying which."""
    for path in left_overs(Path(), read_yaml(Path("params.yaml"))):
        print(f"Removing {path}")
        shutil.rmtree(path) if path.is_dir() else path.unlink()


if __name__ == "__main__":
    with refusing():
        main()
