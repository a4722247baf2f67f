"""Draw the map of every run and write it as a table of strings b, z, a."""

import math
import sys
from pathlib import Path

import pandas as pd

from mbc.conditions import run_name
from mbc.task import conditional_entropies, draw_map, to_strings
from stages.files import read_yaml, refusing


def main(params_file: str, maps_folder: str, datasets_folder: str) -> None:
    """Write <datasets>/<run>.csv for every condition and seed.

    Raises:
        ValueError: if the entropies counted from a table are not log k and 0.
    """
    params = read_yaml(Path(params_file))
    Path(datasets_folder).mkdir(parents=True, exist_ok=True)
    for condition in params["conditions"]:
        request = read_yaml(Path(maps_folder, f"{condition}.yaml"))
        for seed in params["seeds"]:
            ambiguous_map = draw_map(**request, seed=seed)
            given_b, given_b_z = conditional_entropies(ambiguous_map)
            if abs(given_b - math.log(request["k"])) > 1e-9 or given_b_z != 0:
                raise ValueError(
                    f"The map of {run_name(condition, seed)} has H(A|B) = {given_b} and "
                    f"H(A|B,z) = {given_b_z}, not log k and 0."
                )
            table = pd.DataFrame(to_strings(ambiguous_map), columns=["b", "z", "a"])
            table.to_csv(Path(datasets_folder, f"{run_name(condition, seed)}.csv"), index=False)


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
