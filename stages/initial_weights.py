"""Draw the initial weights of every run, so that trainings start without TransformerLens."""

import sys
from pathlib import Path

from safetensors.torch import save

from mbc.conditions import run_name
from mbc.initialisation import initial_weights
from stages.files import read_yaml, refusing, write_whole


def main(params_file: str, networks_folder: str, weights_folder: str) -> None:
    """Write <weights>/<run>.safetensors for every condition and seed."""
    params = read_yaml(Path(params_file))
    for condition in params["conditions"]:
        request = read_yaml(Path(networks_folder, f"{condition}.yaml"))
        for seed in params["seeds"]:
            weights = initial_weights(**request, seed=seed)
            write_whole(
                Path(weights_folder, f"{run_name(condition, seed)}.safetensors"), save(weights)
            )


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
