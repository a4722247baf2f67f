"""Put what was found inside the followed runs into tables."""

import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from mbc import mechanism
from mbc.conditions import run_name
from mbc.mechanism import Results
from stages.files import read_json, read_yaml, refusing, write_text

TABLES: dict[str, dict[str, Callable[[Results], pd.DataFrame]]] = {
    "groups": {
        "groups": mechanism.group_curves,
        "group_transitions": mechanism.group_transitions,
    },
    "heads": {
        "heads": mechanism.head_effects,
        "leading_heads": mechanism.leading_heads,
        "attention": mechanism.attention,
    },
    "curvature": {"curvature": mechanism.curvature},
    "displacement": {"displacement": mechanism.displacements},
    "gradient_noise": {
        "noise_shares": mechanism.noise_shares,
        "noise_sizes": mechanism.noise_sizes,
    },
}
"""For each analysis the tables that are made of its results."""


def main(
    params_file: str,
    groups_folder: str,
    heads_folder: str,
    curvature_folder: str,
    displacement_folder: str,
    gradient_noise_folder: str,
    tables_folder: str,
) -> None:
    """Walk the followed conditions and seeds as the parameters name them."""
    params = read_yaml(Path(params_file))
    folders = {
        "groups": groups_folder,
        "heads": heads_folder,
        "curvature": curvature_folder,
        "displacement": displacement_folder,
        "gradient_noise": gradient_noise_folder,
    }
    for analysis, folder in folders.items():
        key = "gradient_noise" if analysis == "gradient_noise" else "conditions"
        results = {}
        for condition in params["mechanism"][key]:
            for seed in params["seeds"]:
                run = run_name(condition, seed)
                path = Path(folder, f"{run}.json")
                if not path.exists():
                    raise ValueError(
                        f"{path} is missing: 'dvc repro {analysis}@{run}' measures it."
                    )
                results[run] = read_json(path)
        for name, make in TABLES[analysis].items():
            write_text(Path(tables_folder, f"{name}.csv"), make(results).to_csv(index=False))


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
