"""Measure training steps per second, ours beside a plain TransformerLens loop: ``make bench``.

All variants take steps on the base condition of params.yaml at the paper's size, each with the
cores as threads of one process and with a process of one thread on each core. They take turns in
several rounds, so that whatever else the machine does slows all of them alike. First of all the
plain loop and ours must give the same losses.
"""

import argparse
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import torch

from mbc.conditions import Condition
from scripts.bench_variants import (
    BFLOAT16,
    CHECKED_STEPS,
    LARGEST_DIFFERENCE,
    OUR_PRODUCTS,
    OURS,
    PLAIN,
    PLAIN_PRODUCTS,
    VARIANTS,
    Timing,
    Variant,
    base_condition,
    examples_of,
    largest_difference,
    products_of,
)
from stages.files import read_yaml, refusing
from stages.processor import set_up


@dataclass(frozen=True)
class Way:
    """A way to use the cores: processes that train at once, and threads of each."""

    processes: int
    threads: int

    def __str__(self) -> str:
        """Return it in words."""
        processes = "process" if self.processes == 1 else "processes"
        threads = "thread" if self.threads == 1 else "threads"
        return f"{self.processes} {processes} x {self.threads} {threads}"


class Worker:
    """Another process that measures variants when asked, with a number of threads of its own.

    What `stages.processor.set_up` does to a process it does to all of it, so the plain loop has
    processes to itself.
    """

    def __init__(self, condition: Condition, variants: list[str], threads: int):
        count = str(threads)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "scripts.bench", "worker"],
            env={**os.environ, "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._send([condition.model_dump(), variants])

    def __enter__(self) -> "Worker":
        """Return the worker itself; leaving the block ends the process."""
        return self

    def __exit__(self, *_) -> None:
        """End the process and wait for its end."""
        self._process.kill()
        self._process.communicate()

    def wait_until_ready(self) -> None:
        """Return when every variant has taken its first step."""
        self._receive()

    def ask(self, variant: str, seconds: float) -> None:
        """Have a variant measured for some seconds; `answer` waits for the result."""
        self._send([variant, seconds])

    def answer(self) -> Timing:
        """Return what was asked for."""
        return Timing(**self._receive())

    def _send(self, message: dict | list) -> None:
        print(json.dumps(message), file=self._process.stdin, flush=True)

    def _receive(self) -> dict:
        line = self._process.stdout.readline()
        if not line:
            raise OSError(f"a measuring process ended with status {self._process.wait()}.")
        return json.loads(line)


def work() -> None:
    """Be the process behind a `Worker`: a line of JSON to set it up, then one for each request."""
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries may print, too
    values, names = json.loads(sys.stdin.readline())
    if PLAIN not in names:
        set_up()
    condition = Condition(**values)
    data = examples_of(condition)
    variants = {name: Variant(name, condition, data) for name in names}
    for variant in variants.values():
        variant.warm_up()
    print("{}", file=answers, flush=True)
    for line in sys.stdin:
        name, seconds = json.loads(line)
        print(json.dumps(asdict(variants[name].measure(seconds))), file=answers, flush=True)


def measure_rounds(
    condition: Condition, ways: list[Way], seconds: float, rounds: int
) -> dict[tuple[str, Way], list[list[Timing]]]:
    """Measure all variants in all ways, in turn.

    Returns:
        For each variant and way a list with an entry for each round: the timings of the processes
        that trained at once.
    """
    timings: dict[tuple[str, Way], list[list[Timing]]] = {}
    with ExitStack() as stack:
        workers: dict[tuple[str, Way], list[Worker]] = {}
        for names in ([PLAIN], [name for name in VARIANTS if name != PLAIN]):
            for way in ways:
                started = [
                    stack.enter_context(Worker(condition, names, way.threads))
                    for _ in range(way.processes)
                ]
                for worker in started:
                    worker.wait_until_ready()
                workers |= {(name, way): started for name in names}
        for _ in range(rounds):
            for variant in VARIANTS:
                for way in ways:
                    for worker in workers[variant, way]:
                        worker.ask(variant, seconds)
                    together = [worker.answer() for worker in workers[variant, way]]
                    timings.setdefault((variant, way), []).append(together)
    return timings


def steps_per_second(together: list[Timing]) -> float:
    """Return the steps per second of processes that trained at once, summed."""
    return sum(1 / timing.seconds_per_step for timing in together)


def ratios(speeds: dict[tuple[str, Way], float], ways: list[Way]) -> dict[str, float]:
    """Return the ratios of speeds by what they compare.

    Args:
        speeds: steps per second of each variant in each way.
        ways: the ways to use the cores, one process first. Where variants are compared, each is
            taken in its better way.
    """
    best = {variant: max(speeds[variant, way] for way in ways) for variant in VARIANTS}
    compared = [(OURS, PLAIN), (BFLOAT16, PLAIN)]
    compared += [(OURS, OUR_PRODUCTS), (OURS, PLAIN_PRODUCTS), (BFLOAT16, OUR_PRODUCTS)]
    result = {f"{one} / {other}": best[one] / best[other] for one, other in compared}
    if len(ways) > 1:
        together, alone = ways[1], ways[0]
        for variant in VARIANTS:
            name = f"{together} / {alone}: {variant}"
            result[name] = speeds[variant, together] / speeds[variant, alone]
    return result


def main() -> int:
    """Check, measure and print; return 1 if the losses differ, else 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("role", nargs="?", choices=["worker"], help=argparse.SUPPRESS)
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="cores to use")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of one measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each kind")
    arguments = parser.parse_args()
    if arguments.role == "worker":
        work()
        return 0
    cores, rounds = max(1, arguments.cores), max(1, arguments.rounds)
    capability = torch.backends.cpu.get_cpu_capability()
    print(f"CPU capability {capability}, {cores} cores, PyTorch {torch.__version__}", flush=True)
    torch.set_num_threads(1)  # for the check; each worker has its own number
    condition = base_condition(read_yaml(Path("params.yaml")))
    data = examples_of(condition)
    difference = largest_difference(condition, data, CHECKED_STEPS)
    print(
        f"Losses of {CHECKED_STEPS} steps, {OURS} against {PLAIN}: largest relative difference "
        f"{difference:.1e} (at most {LARGEST_DIFFERENCE:.0e})",
        flush=True,
    )
    if not difference <= LARGEST_DIFFERENCE:
        return 1
    ways = list(dict.fromkeys([Way(1, cores), Way(cores, 1)]))
    timings = measure_rounds(condition, ways, arguments.seconds, rounds)
    print(f"\nTraining steps per second, median (range) of {rounds} x {arguments.seconds:g} s")
    print_results(timings, ways)
    for name in (PLAIN_PRODUCTS, OUR_PRODUCTS):
        count = sum(product.multiply_adds for product in products_of(name, condition, data))
        print(f"{name}: {count / 1e6:.0f} million multiply-adds a step")
    return 0


def print_results(timings: dict[tuple[str, Way], list[list[Timing]]], ways: list[Way]) -> None:
    """Print the table of steps per second, the ratios and the share of evaluations."""
    print(f"{'':24}" + "".join(f"{way!s:>30}" for way in ways))
    speeds = {}
    for variant in VARIANTS:
        cells = ""
        for way in ways:
            values = [steps_per_second(together) for together in timings[variant, way]]
            speeds[variant, way] = median(values)
            cell = f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
            cells += f"{cell:>30}"
        print(f"{variant:24}{cells}")
    print("\nRatios, of the better ways where none is named")
    for name, ratio in ratios(speeds, ways).items():
        print(f"{ratio:8.2f}  {name}")
    print("\nShare of the time for evaluations and history rows")
    for variant in (OURS, BFLOAT16):
        seen = [t for way in ways for together in timings[variant, way] for t in together]
        share, spacing = median(t.evaluation_share for t in seen), 1 / seen[0].evaluations_per_step
        print(f"{share:8.1%}  {variant}, an evaluation every {spacing:.0f} steps")
    print()


if __name__ == "__main__":
    with refusing():
        sys.exit(main())
