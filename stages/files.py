"""Reading and writing the files that stages exchange."""

import json
import math
import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import yaml


class _Yaml12Loader(yaml.SafeLoader):
    """Reads scalars as YAML 1.2 and so as DVC does: ``1e-3`` is a number, ``on`` is a word."""

    yaml_implicit_resolvers: ClassVar[dict] = {}

    def construct_mapping(self, node, deep=False):
        keys = [key_node.value for key_node, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                line = node.start_mark.line + 1
                raise ValueError(f"{key} stands twice in the mapping at line {line}.")
        return super().construct_mapping(node, deep)


class _Yaml12Dumper(yaml.SafeDumper):
    """Quotes what the loader would not read back as a word."""

    yaml_implicit_resolvers = _Yaml12Loader.yaml_implicit_resolvers


def _construct_int(loader, node):
    return int(loader.construct_scalar(node).replace("_", ""))


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9][0-9_]*", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+."),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
):
    _Yaml12Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), [*_first, ""]
    )
_Yaml12Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)


def read_yaml(path: Path) -> dict:
    """Return the mapping in a YAML 1.2 file.

    Raises:
        ValueError: if a key stands twice, or the file is not a mapping.
    """
    values = yaml.load(path.read_text(), Loader=_Yaml12Loader)  # noqa: S506 - a SafeLoader
    if not isinstance(values, dict):
        raise ValueError(f"{path} does not hold a mapping of parameters.")
    return values


def write_yaml(path: Path, values: dict) -> None:
    """Write a mapping, keys in the given order."""
    write_text(path, yaml.dump(values, Dumper=_Yaml12Dumper, sort_keys=False))


def read_json(path: Path) -> dict:
    """Return the content of a JSON file."""
    return json.loads(path.read_text())


def write_json(path: Path, values: dict) -> None:
    """Write strict JSON; entries that are None are left out.

    Raises:
        ValueError: if a number is not finite.
    """
    write_text(path, json.dumps(_without_none(values), indent=2, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    write_whole(path, text.encode())


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name, then give it its own: readers never see a part.

    Raises:
        OSError: names the file and what stood in the way; the file is then as it was.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise OSError(f"{path} could not be written: {error.strerror}.") from error


def checkpoint_name(step: int) -> str:
    """Return the file name of the weights at a step."""
    return f"step_{step:06d}.safetensors"


def checkpoint_steps(folder: Path) -> list[int]:
    """Return the steps whose weights a folder holds, in order."""
    return sorted(int(path.stem.removeprefix("step_")) for path in folder.glob("step_*"))


@contextmanager
def refusing():
    """Turn a refused value into one sentence on stderr and exit status 1."""
    try:
        yield
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")


def _without_none(value):
    if isinstance(value, dict):
        return {key: _without_none(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [_without_none(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} cannot be written as JSON.")
    return value
