import json
import resource
import signal

import pytest

from stages.files import read_yaml, refusing, write_json, write_text, write_whole, write_yaml


@pytest.fixture
def yaml_file(tmp_path):
    def write(text):
        path = tmp_path / "params.yaml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("text", ["1e-3", "0.001", "1.0e-3", "1E-3", "1e-03", ".001", "+0.001"])
def test_all_spellings_of_a_number_are_the_number(yaml_file, text):
    value = read_yaml(yaml_file(f"lr: {text}\n"))["lr"]
    assert value == 0.001
    assert type(value) is float


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-05", 1e-5),
        ("20", 20),
        ("-3", -3),
        ("010", 10),
        ("true", True),
        ("on", "on"),
        ("no", "no"),
        ("1_000", 1000),
        ("1:30", "1:30"),
        ('"1e-3"', "1e-3"),
        ("fast", "fast"),
        ("", None),
        ("~", None),
        ("null", None),
        ("[1, 2.5]", [1, 2.5]),
        ("{k: 3}", {"k": 3}),
    ],
)
def test_scalars_are_read_as_dvc_reads_them(yaml_file, text, value):
    from dvc.utils.serialize import load_yaml

    path = yaml_file(f"key: {text}\n")
    assert read_yaml(path) == {"key": value} == load_yaml(path)
    assert type(read_yaml(path)["key"]) is type(value)


def test_a_key_that_stands_twice_is_refused(yaml_file):
    with pytest.raises(ValueError, match="k03 stands twice"):
        read_yaml(yaml_file("conditions:\n  k03: {k: 3}\n  k03: {k: 4}\n"))
    with pytest.raises(ValueError, match="does not hold a mapping"):
        read_yaml(yaml_file("- 1\n"))


def test_yaml_is_written_as_it_is_read(tmp_path):
    values = {"lr": 1e-05, "k": 3, "fibre": "distinct", "text": "1e-3", "on": None, "flag": False}
    write_yaml(tmp_path / "a.yaml", values)
    assert read_yaml(tmp_path / "a.yaml") == values


def test_json_is_strict_and_leaves_out_none(tmp_path):
    path = tmp_path / "new" / "a.json"
    write_json(path, {"a": 1.5, "b": None, "c": {"d": None, "e": (1, 2)}})
    assert json.loads(path.read_text()) == {"a": 1.5, "c": {"e": [1, 2]}}
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="cannot be written"):
            write_json(path, {"a": [bad]})
    assert json.loads(path.read_text())["a"] == 1.5


def test_a_failed_write_leaves_the_old_file_and_no_part(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match=r"a.txt could not be written: File too large\."):
            write_whole(path, b"new" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_refusals_are_one_line_and_exit_1():
    with pytest.raises(SystemExit, match="error: lr is -1") as exit_, refusing():
        raise ValueError("lr is -1.")
    assert exit_.value.code == "error: lr is -1."
