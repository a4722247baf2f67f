"""What is left of runs that the parameters no longer name."""

import pytest

from scripts.prune import left_overs
from scripts.repro import ANALYSES

KEPT = (
    *("data/runs/base-42/history.csv", "data/runs/transfer_base-42/history.csv"),
    *("data/weights/.gitignore", "data/weights/base-42/last.safetensors"),
    *(".training/base-42/log.txt", ".training/train-base-42.txt"),
    *(".training/transfer-base-42.txt", ".training/groups-base-42.txt"),
    *(f"metrics/{analysis}/base-42.json" for analysis in ANALYSES),
    *("metrics/gradient_noise/lr_3e_4-42.json", "metrics/runs.csv"),
)
LEFT = (
    *("data/runs/gone-42", "data/runs/base-43", "data/runs/transfer_k03-42"),
    *("data/weights/gone-42", ".training/gone-42"),
    *(".training/train-gone-42.txt", ".training/groups-k03-42.txt"),
    *(f"metrics/{analysis}/k03-42.json" for analysis in ANALYSES),
    *("metrics/groups/lr_3e_4-42.json", "metrics/heads/base-43.json"),
)


def test_only_what_is_named_no_more_is_left_over(params, tmp_path):
    for name in (*KEPT, *LEFT):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch() if path.suffix or name == "data/weights/.gitignore" else path.mkdir()
    found = left_overs(tmp_path, {**params, "seeds": [42]})
    assert [str(path.relative_to(tmp_path)) for path in found] == sorted(LEFT)


def test_a_new_clone_has_none_and_need_not_have_the_folders(params, tmp_path):
    assert left_overs(tmp_path, params) == []


def test_wrong_parameters_remove_nothing(params, tmp_path):
    with pytest.raises(ValueError, match="seeds is"):
        left_overs(tmp_path, {**params, "seeds": []})
