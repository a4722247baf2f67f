"""Check every parameter, then write each condition, resolved, to a file of its own."""

import sys
from pathlib import Path

from mbc.conditions import MAP_KEYS, NETWORK_KEYS, Condition
from mbc.resolution import resolve_parameters
from stages.files import read_yaml, refusing, write_yaml


def main(params_file: str, maps_folder: str, networks_folder: str, conditions_folder: str) -> None:
    """Write <condition>.yaml into three folders: what its map needs, what its network, and all."""
    conditions, trained = resolve_parameters(read_yaml(Path(params_file)))
    _write_all(Path(maps_folder), conditions, MAP_KEYS)
    _write_all(Path(networks_folder), conditions, NETWORK_KEYS)
    _write_all(Path(conditions_folder), trained, tuple(Condition.model_fields))


def _write_all(folder: Path, conditions: dict[str, Condition], keys: tuple[str, ...]) -> None:
    """Write these keys of every condition, and remove all else: DVC leaves the folder as it was."""
    files = {folder / f"{name}.yaml": condition for name, condition in conditions.items()}
    for path, condition in files.items():
        write_yaml(path, {key: getattr(condition, key) for key in keys})
    for path in set(folder.iterdir()) - set(files):
        path.unlink()


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
