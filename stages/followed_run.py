"""Reading a run that kept checkpoints, and writing what an analysis makes of it."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd
import torch
from safetensors.torch import load_file

from mbc.conditions import Condition, parse
from mbc.model import Weights
from mbc.settings import MechanismSettings, TransitionSettings
from mbc.task import Sequences
from mbc.transitions import Moment, waiting_time
from stages.examples import read_examples
from stages.files import checkpoint_name, checkpoint_steps, read_json, read_yaml, write_json
from stages.processor import set_up


@dataclass(frozen=True)
class FollowedRun:
    """A finished run with its checkpoints.

    Attributes:
        condition: what was trained.
        seed: its seed.
        data: all its examples.
        history: its evaluations.
        tau: its waiting time.
        weights_folder: where its checkpoints lie.
        settings: how checkpoints are analysed.
        device: where to compute.
        diverged_at: step of its first loss that was not finite; None if there was none.
    """

    condition: Condition
    seed: int
    data: Sequences
    history: pd.DataFrame
    tau: Moment
    weights_folder: Path
    settings: MechanismSettings
    device: torch.device
    diverged_at: int | None

    @property
    def steps(self) -> list[int]:
        """Steps of its checkpoints, rising."""
        return checkpoint_steps(self.weights_folder)

    def weights(self, step: int) -> Weights:
        """Return the weights at a checkpoint, without gradients, on the device."""
        return load_file(self.weights_folder / checkpoint_name(step), device=str(self.device))


def read_followed_run(
    params_file: str,
    condition_file: str,
    dataset_file: str,
    history_file: str,
    weights_folder: str,
    seed: str,
) -> FollowedRun:
    """Read a run and the parameters of its analysis.

    How it ended is read from ``outcome.json``, which lies beside its history.

    Raises:
        ValueError: if the run has no checkpoints.
    """
    params = read_yaml(Path(params_file))
    condition = parse(Condition, read_yaml(Path(condition_file)), condition_file)
    history = pd.read_csv(history_file)
    fraction = parse(TransitionSettings, params["transition"], "transition").tau_fraction
    run = FollowedRun(
        condition=condition,
        seed=int(seed),
        data=read_examples(dataset_file, condition),
        history=history,
        tau=waiting_time(history, condition.k, fraction),
        weights_folder=Path(weights_folder),
        settings=parse(MechanismSettings, params["mechanism"], "mechanism"),
        device=set_up(),
        diverged_at=read_json(Path(history_file).with_name("outcome.json")).get("diverged_at"),
    )
    if not run.steps:
        raise ValueError(f"{weights_folder} holds no checkpoints.")
    return run


def write_analysis(analyse: Callable[[FollowedRun], dict], *files: str) -> None:
    """Write k, the waiting time and what an analysis returns, as a metrics file.

    A run that diverged is not analysed, because its checkpoints need not be finite: in place of the
    results stands a ``statement``.

    Args:
        analyse: function of a run.
        files: arguments of `read_followed_run`, then the metrics file.
    """
    *inputs, metrics_file = files
    run = read_followed_run(*inputs)
    if run.diverged_at is None:
        found = analyse(run)
    else:
        found = {"statement": f"The run diverged at step {run.diverged_at}: nothing was measured."}
    write_json(Path(metrics_file), {"k": run.condition.k, "tau": asdict(run.tau), **found})
