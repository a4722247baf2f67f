"""The training stage as a process: killed, starved of disk, started twice."""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest
from safetensors.torch import save_file

from mbc.task import draw_map, to_strings
from stages import saved_state
from stages.files import write_yaml
from tests.conftest import ROOT, initial

OFTEN = "import sys; from stages import train; from stages.files import refusing\n"
OFTEN += "train.SECONDS_BETWEEN_SAVES = 0\nwith refusing(): train.main(*sys.argv[1:])"
"""The stage, saving its state at every evaluation."""


@pytest.fixture(scope="module")
def inputs(make_condition, tmp_path_factory):
    """Condition, dataset and initial weights of a run of a few seconds, as files."""
    folder = tmp_path_factory.mktemp("inputs")
    condition = make_condition(max_steps=300, lr=1e-4, checkpoint_every=40, label_noise=0.1)
    write_yaml(folder / "condition.yaml", condition.model_dump())
    rows = to_strings(draw_map(condition.k, condition.n_b, condition.fibre, 0))
    lines = [",".join(row) for row in [("b", "z", "a"), *rows]]
    (folder / "dataset.csv").write_text("\n".join(lines) + "\n")
    save_file(initial(condition), folder / "initial.safetensors")
    return folder


def command(inputs, folder):
    names = ("condition.yaml", "dataset.csv", "initial.safetensors")
    paths = [inputs / name for name in names]
    outputs = [folder / "data" / "run-0", folder / "weights", folder / "state"]
    return [sys.executable, "-c", OFTEN, *map(str, [*paths, 0, *outputs])]


def start_stage(inputs, folder, **options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    usual = {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    options = {**usual, **options}
    return subprocess.Popen(command(inputs, folder), env=environment, text=True, **options)


def run_stage(inputs, folder, **options):
    process = start_stage(inputs, folder, **options)
    output, errors = process.communicate()
    return process.returncode, output + errors


def outputs(folder):
    files = [p for n in ("data", "weights") for p in (folder / n).rglob("*") if p.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def undisturbed(inputs, tmp_path_factory):
    """The outputs of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    status, text = run_stage(inputs, folder)
    assert status == 0, text
    return outputs(folder)


def wait_for_state(folder, process):
    """Wait until the process has saved two states, and stop it there."""
    before = folder / "state" / "run-0" / saved_state.BEFORE
    while not before.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate()


def test_outputs_are_history_outcome_checkpoints_and_last_weights(undisturbed):
    steps = [f"weights/step_{step:06d}.safetensors" for step in range(0, 320, 40)]
    own = ["data/run-0/history.csv", "data/run-0/outcome.json", "weights/last.safetensors"]
    assert sorted(undisturbed) == sorted([*own, *steps])


def test_killed_at_ten_random_moments_it_ends_with_the_same_bytes(inputs, undisturbed, tmp_path):
    rng = random.Random(0)
    log = tmp_path / "state" / "run-0" / "log.txt"
    for _ in range(9):
        begun = log.read_text().count("identity") if log.exists() else 0
        process = start_stage(inputs, tmp_path)
        while not (log.exists() and log.read_text().count("identity") > begun):
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.6))
        process.kill()
        process.communicate()
        assert outputs(tmp_path) in ({}, undisturbed)
    wait_for_state(tmp_path, start_stage(inputs, tmp_path))
    status, text = run_stage(inputs, tmp_path)
    assert status == 0, text
    assert "continuing at step" in text
    assert outputs(tmp_path) == undisturbed
    left = {path.name for path in (tmp_path / "state" / "run-0").iterdir()}
    assert left == {"lock", "log.txt"}


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 not a whole state"])
def test_an_unreadable_state_is_said_and_the_one_before_is_used(
    inputs, undisturbed, tmp_path, damage
):
    wait_for_state(tmp_path, start_stage(inputs, tmp_path))
    (tmp_path / "state" / "run-0" / saved_state.NEWEST).write_bytes(damage)
    status, text = run_stage(inputs, tmp_path)
    assert status == 0, text
    assert "state.pt cannot be read" in text
    assert "continuing at step" in text
    assert outputs(tmp_path) == undisturbed


def test_a_state_of_other_parameters_is_not_used(inputs, tmp_path):
    wait_for_state(tmp_path, start_stage(inputs, tmp_path))
    other = tmp_path / "other"
    other.mkdir()
    for path in inputs.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    text = (inputs / "condition.yaml").read_text()
    (other / "condition.yaml").write_text(text.replace("max_steps: 300", "max_steps: 5"))
    status, text = run_stage(other, tmp_path)
    assert status == 0, text
    assert "belongs to other parameters, data or code: it is not used." in text
    assert "continuing" not in text
    assert sorted(p.name for p in (tmp_path / "weights").iterdir()) == [
        *("last.safetensors", "step_000000.safetensors")
    ]


@pytest.mark.parametrize("file", ["mbc/model.py", "stages/train.py"])
def test_a_state_of_other_code_is_not_used(inputs, undisturbed, tmp_path, file):
    code = tmp_path / "code"
    for package in ("mbc", "stages"):
        shutil.copytree(ROOT / package, code / package)
    wait_for_state(tmp_path, start_stage(inputs, tmp_path, cwd=code))
    with (code / file).open("a") as changed:
        changed.write("# a change\n")
    status, text = run_stage(inputs, tmp_path, cwd=code)
    assert status == 0, text
    assert "belongs to other parameters, data or code: it is not used." in text
    assert "continuing" not in text
    assert outputs(tmp_path) == undisturbed


def test_a_second_process_is_refused(inputs, tmp_path):
    first = start_stage(inputs, tmp_path)
    lock = tmp_path / "state" / "run-0" / "log.txt"
    while not lock.exists():
        time.sleep(0.01)
    first.send_signal(signal.SIGSTOP)  # or it may end before the second process has started
    status, text = run_stage(inputs, tmp_path)
    first.kill()
    first.communicate()
    assert status == 1
    assert text.strip() == "error: run-0 is being trained by another process."


def test_a_full_disk_is_said_and_nothing_is_lost(inputs, undisturbed, tmp_path):
    def limit_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    status, text = run_stage(inputs, tmp_path, preexec_fn=limit_files)
    assert status == 1
    assert "could not be written: File too large." in text
    assert "Traceback" not in text
    assert outputs(tmp_path) == {}
    assert not list(tmp_path.rglob("*.part"))
    status, text = run_stage(inputs, tmp_path)
    assert status == 0, text
    assert outputs(tmp_path) == undisturbed
