"""Check every parameter, then write each condition, resolved, to a file of its own."""

import sys
from pathlib import Path

from mbc.conditions import BASE_KEYS, MAP_KEYS, resolve_conditions
from mbc.settings import check_settings
from stages.files import read_yaml, refusing, write_yaml


def main(params_file: str, maps_folder: str, conditions_folder: str) -> None:
    """Write <maps>/<condition>.yaml, what its map needs, and <conditions>/<condition>.yaml, all."""
    params = read_yaml(Path(params_file))
    settings = check_settings({key: params[key] for key in params if key not in BASE_KEYS})
    base = {key: params[key] for key in BASE_KEYS if key in params}
    conditions = resolve_conditions(base, settings.conditions, settings.scale)
    for name, condition in conditions.items():
        values = condition.model_dump()
        write_yaml(Path(maps_folder, f"{name}.yaml"), {key: values[key] for key in MAP_KEYS})
        write_yaml(Path(conditions_folder, f"{name}.yaml"), values)


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
