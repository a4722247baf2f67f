"""Check every parameter, then write each condition, resolved, to a file of its own."""

import sys
from pathlib import Path

from mbc.conditions import BASE_KEYS, MAP_KEYS, NETWORK_KEYS
from mbc.resolution import check_transfers, resolve_conditions
from mbc.settings import TRANSFER_PREFIX, check_settings, with_checkpoints
from stages.files import read_yaml, refusing, write_yaml


def main(params_file: str, maps_folder: str, networks_folder: str, conditions_folder: str) -> None:
    """Write <condition>.yaml into three folders: what its map needs, what its network, and all."""
    params = read_yaml(Path(params_file))
    settings = check_settings({key: params[key] for key in params if key not in BASE_KEYS})
    base = {key: params[key] for key in BASE_KEYS if key in params}
    conditions = resolve_conditions(base, settings.conditions, settings.scale)
    check_transfers(conditions, settings.transfers)
    for name, condition in conditions.items():
        values = condition.model_dump()
        for folder, keys in ((maps_folder, MAP_KEYS), (networks_folder, NETWORK_KEYS)):
            write_yaml(Path(folder, f"{name}.yaml"), {key: values[key] for key in keys})
    transfers = {f"{TRANSFER_PREFIX}{name}": conditions[name] for name in settings.transfers}
    trained = with_checkpoints(conditions, settings.mechanism, settings.scale) | transfers
    for name, condition in trained.items():
        write_yaml(Path(conditions_folder, f"{name}.yaml"), condition.model_dump())


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
