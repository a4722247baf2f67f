"""Reproduce the pipeline, several stages at once: what ``make repro`` and ``make quick`` run.

DVC runs one stage after another. Here the stages before training run first, then the trainings
and the analyses of single runs that are not up to date, side by side, each in a DVC of its own,
then everything behind them.

Results that Git holds count, as with ``dvc repro --allow-missing``: in a fresh clone, which has no
weights, only those runs are trained again whose weights something that has changed asks for.

Each stage gets its share of the cores as threads, unless the environment has OMP_NUM_THREADS.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path

from mbc.settings import TRANSFER_PREFIX
from stages.files import read_yaml

CONDITIONS = Path("data/conditions")
FIRST = ["conditions", "datasets", "initial_weights"]
ANALYSES = ["groups", "heads", "curvature", "displacement", "gradient_noise"]
WITH_WEIGHTS = ["transfer", *ANALYSES]
"""Stages that need the weights of a training."""
WEIGHTS = Path("data/weights")
INPUTS = [Path("data/datasets"), Path("data/initial_weights")]
LOGS = Path(".training")


def main() -> int:
    """Reproduce the pipeline in the working directory; return the exit status."""
    return reproduce(parse_jobs(__doc__))


def parse_jobs(description: str) -> int:
    """Return how many stages are to run at once, as the command line says."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=cores(), help="stages at once")
    return max(1, parser.parse_args().jobs)


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def log_of(stage: str) -> Path:
    """Return the file that keeps what a stage prints."""
    return LOGS / f"{stage.replace('@', '-')}.txt"


def reproduce(jobs: int) -> int:
    """Reproduce the pipeline in the working directory.

    Returns:
        0 if everything is up to date at the end, else 1 or the exit status of DVC.
    """
    _exit_on_signals()
    if _run(["dvc", "repro", "--quiet", "--allow-missing", *FIRST]):
        return 1
    for choose in (
        lambda: _changed(["train"]),
        lambda: _trainings_without_weights(_changed(WITH_WEIGHTS)),
        lambda: _changed(WITH_WEIGHTS),
    ):
        stages = sorted(choose(), key=_expected_length, reverse=True)
        lacking = stages and not all(path.exists() for path in INPUTS)
        if lacking and _run(["dvc", "repro", "--quiet", *FIRST]):
            return 1
        failed = _run_side_by_side(stages, jobs)
        if failed:
            print("Failed:", *failed, sep="\n  ", file=sys.stderr)
            return 1
    return _run(["dvc", "repro", "--allow-missing"])


def _exit_on_signals() -> None:
    """Let a request to end and a closed terminal raise SystemExit, so that no child is left."""

    def leave(number, _):
        for each in (signal.SIGTERM, signal.SIGHUP):  # a second one must not stop the clearing up
            signal.signal(each, lambda *_: None)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, leave)


def _run(command: list[str]) -> int:
    """Run a command to its end and return its exit status; it does not outlive this process."""
    process = subprocess.Popen(command, start_new_session=True)
    try:
        return process.wait()
    except BaseException:
        _end([process])
        raise


def _end(processes: list[subprocess.Popen]) -> None:
    """End processes that lead a session of their own, and all that they have started."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    for process in processes:
        process.wait()


def _changed(names: list[str]) -> list[str]:
    """Return the stages made from these by a matrix that have to run, in DVC's order.

    ``dvc repro --dry --allow-missing`` would do, but fails at a stage that lacks its weights.
    """
    command = ["dvc", "status", "--json", *names]
    status = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [
        stage
        for stage, changes in json.loads(status).items()
        if any(_has_to_run(change) for change in changes)
    ]


def _has_to_run(change: dict | str) -> bool:
    """Return whether more has changed than that a file in no Git is missing here."""
    if isinstance(change, str):  # the command, or a stage that always runs
        return True
    return any(
        state not in ("deleted", "not in cache")
        or (kind == "changed outs" and Path(path).parent != WEIGHTS)
        for kind, files in change.items()
        for path, state in files.items()
    )


def _trainings_without_weights(stages: list[str]) -> list[str]:
    """Return the trainings whose weights these stages need and the working directory lacks."""
    runs = {
        f"forward_{run}" if kind == "transfer" else run
        for kind, run in (stage.split("@") for stage in stages)
    }
    return [f"train@{run}" for run in sorted(runs) if not (WEIGHTS / run).exists()]


def _expected_length(stage: str) -> float:
    """Return a number that grows with the length of a run: the longest are to start first.

    The waiting time grows with the dataset (section 3.2 of the paper) and with the learning rate
    (section 3.4).
    """
    kind, name = stage.split("@")
    prefix = TRANSFER_PREFIX if kind == "transfer" else ""
    condition = read_yaml(CONDITIONS / f"{prefix}{name.rpartition('-')[0]}.yaml")
    return condition["lr"] * condition["n_b"] * condition["k"]


def _run_side_by_side(stages: list[str], jobs: int) -> list[str]:
    """Run the stages, ``jobs`` at a time; return those that failed. A failure stops no other."""
    threads = os.environ.get("OMP_NUM_THREADS", str(max(1, cores() // jobs)))
    environment = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, **os.environ}
    running: set[subprocess.Popen] = set()
    starting, ending = threading.Lock(), threading.Event()
    failed = []

    def run(stage: str) -> int:
        command = ["dvc", "--wait-for-lock", "repro", "--single-item", stage]
        log = log_of(stage)
        log.parent.mkdir(exist_ok=True)
        with log.open("w") as file:
            with starting:  # none starts behind the back of the one who ends them all
                if ending.is_set():
                    return 1
                process = subprocess.Popen(
                    command, env=environment, stdout=file, stderr=file, start_new_session=True
                )
                running.add(process)
            status = process.wait()
            running.discard(process)
        return status

    with ThreadPoolExecutor(jobs) as pool:
        try:
            futures = {pool.submit(run, stage): stage for stage in stages}
            for number, future in enumerate(as_completed(futures), start=1):
                stage = futures[future]
                state = "failed" if future.result() else "done"
                print(f"[{number}/{len(stages)}] {stage} {state}", flush=True)
                if future.result():
                    failed.append(stage)
        except BaseException:
            ending.set()
            pool.shutdown(wait=False, cancel_futures=True)
            with starting:
                _end(list(running))
            raise
    return failed


if __name__ == "__main__":
    sys.exit(main())
