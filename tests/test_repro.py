"""Stages side by side, on a DVC that only notes how it was called."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from scripts.repro import cores, parse_jobs
from stages.files import write_yaml
from tests.conftest import ROOT

DVC = """#!/bin/sh
echo "$OMP_NUM_THREADS $MKL_NUM_THREADS $*" >> calls.txt
case "$*" in
  "status --json train") [ -e trained ] && echo '{}' || cat status.json; touch trained ;;
  status*) echo '{}' ;;
  *$FAILING) exit 1 ;;
  *$LASTING) sleep 300 & echo "$$ $!" >> processes.txt; wait ;;
esac
"""
"""What it calls ``$FAILING`` fails, and ``$LASTING`` lasts until it is ended."""


@pytest.fixture
def workspace(tmp_path):
    """Four trainings that have to run, a, b, c and d in the order of their expected length."""
    for folder in ("bin", "data/conditions", "data/datasets", "data/initial_weights"):
        (tmp_path / folder).mkdir(parents=True)
    for name, k in (("a", 9), ("b", 8), ("c", 7), ("d", 6)):
        write_yaml(tmp_path / f"data/conditions/{name}.yaml", {"lr": 1.0, "n_b": 10, "k": k})
    status = {f"train@{name}-0": ["changed command"] for name in "abcd"}
    (tmp_path / "status.json").write_text(json.dumps(status))
    (tmp_path / "bin/dvc").write_text(DVC)
    (tmp_path / "bin/dvc").chmod(0o755)
    return tmp_path


def begin(folder, *prefix, jobs=2, failing="nothing", lasting="nothing", **environment):
    """Start ``scripts.repro``."""
    kept = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    kept |= {"PATH": f"{folder / 'bin'}{os.pathsep}{kept['PATH']}", "PYTHONPATH": str(ROOT)}
    kept |= {"FAILING": failing, "LASTING": lasting, **environment}
    command = [*prefix, sys.executable, "-m", "scripts.repro", "--jobs", str(jobs)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=kept, preexec_fn=heed_signals, **pipes)


def heed_signals():
    """Take back what the tests' own process may have been told to ignore, as in the background."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def calls(folder):
    lines = (folder / "calls.txt").read_text().splitlines()
    return [line.split(" ", 2) for line in lines]


def test_a_failure_stops_no_other_and_is_named_at_the_end(workspace):
    process = begin(workspace, failing="train@b-0")
    printed, complaints = process.communicate(timeout=60)
    assert process.returncode == 1
    assert complaints == "Failed:\n  train@b-0\n"
    assert sorted(line.split("] ")[1] for line in printed.splitlines()) == [
        *("train@a-0 done", "train@b-0 failed", "train@c-0 done", "train@d-0 done")
    ]
    assert calls(workspace)[-1][2].startswith("--wait-for-lock")  # nothing behind the trainings


def test_everything_runs_in_order_and_the_longest_first(workspace):
    process = begin(workspace, jobs=1)  # of two at once nobody knows which comes first
    process.communicate(timeout=60)
    assert process.returncode == 0
    commands = [command for *_, command in calls(workspace)]
    assert commands[0] == "repro --quiet --allow-missing conditions datasets initial_weights"
    assert commands[-1] == "repro --allow-missing"
    trained = [command.split()[-1] for command in commands if "--single-item" in command]
    assert trained == [f"train@{name}-0" for name in "abcd"]


@pytest.mark.parametrize(
    ("environment", "threads"),
    [
        ({}, [str(max(1, cores() // 2))] * 2),
        ({"OMP_NUM_THREADS": "3"}, ["3", "3"]),
        ({"OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "5"}, ["3", "5"]),
    ],
)
def test_stages_take_the_threads_of_the_environment_or_their_share(workspace, environment, threads):
    begin(workspace, **environment).communicate(timeout=60)
    stages = [call for call in calls(workspace) if "--single-item" in call[2]]
    assert [call[:2] for call in stages] == [threads] * 4


def test_jobs_are_the_cores_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 5}, raising=False)
    monkeypatch.setattr(sys, "argv", ["repro"])
    assert parse_jobs("text") == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert parse_jobs("text") == os.cpu_count()


def wait_for(found, seconds=30):
    end = time.monotonic() + seconds
    while not found() and time.monotonic() < end:
        time.sleep(0.05)
    return found()


def alive(folder):
    """Return which of the processes that last are still there."""
    found = []
    for word in (folder / "processes.txt").read_text().split():
        try:
            gone = psutil.Process(int(word)).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            gone = True
        found += [] if gone else [int(word)]
    return found


def lasting(folder, number):
    """Return whether this many are there."""
    path = folder / "processes.txt"
    return path.exists() and len(path.read_text().splitlines()) == number


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize(("last", "number"), [("-0", 2), ("initial_weights", 1)])
def test_no_child_outlives_it(workspace, ending, last, number):
    process = begin(workspace, lasting=last)
    assert wait_for(lambda: lasting(workspace, number))
    assert len(alive(workspace)) == 2 * number
    process.send_signal(ending)
    process.communicate(timeout=30)
    assert process.returncode == (-ending if ending == signal.SIGINT else 128 + ending)
    assert wait_for(lambda: not alive(workspace), seconds=5)
    assert lasting(workspace, number)  # nothing was started after the signal


def test_a_closed_terminal_does_not_end_it_under_nohup(workspace):
    process = begin(workspace, "nohup", lasting="-0")
    assert wait_for(lambda: lasting(workspace, 2))
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    assert len(alive(workspace)) == 4
    process.terminate()
    process.communicate(timeout=30)
    assert wait_for(lambda: not alive(workspace), seconds=5)


def test_make_takes_no_number_of_threads_for_the_number_of_jobs():
    def jobs(**environment):
        kept = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "JOBS")}
        command = ["make", "--dry-run", "repro"]
        done = subprocess.run(
            command, cwd=ROOT, env={**kept, **environment}, capture_output=True, text=True
        )
        return done.stdout.split("--jobs ")[1].split()[0]

    assert jobs(OMP_NUM_THREADS=str(cores() + 1)) == jobs()
    assert jobs(JOBS="7") == "7"
