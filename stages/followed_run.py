"""Reading a run that kept checkpoints."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from safetensors.torch import load_file

from mbc.conditions import Condition, parse
from mbc.model import Weights
from mbc.settings import MechanismSettings, TransitionSettings
from mbc.task import Sequences
from mbc.transitions import Moment, waiting_time
from stages.examples import read_examples
from stages.files import checkpoint_name, checkpoint_steps, read_yaml


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
    """

    condition: Condition
    seed: int
    data: Sequences
    history: pd.DataFrame
    tau: Moment
    weights_folder: Path
    settings: MechanismSettings

    @property
    def steps(self) -> list[int]:
        """Steps of its checkpoints, rising."""
        return checkpoint_steps(self.weights_folder)

    def weights(self, step: int) -> Weights:
        """Return the weights at a checkpoint, without gradients, on the CPU."""
        return load_file(self.weights_folder / checkpoint_name(step))


def read_followed_run(
    params_file: str,
    condition_file: str,
    dataset_file: str,
    history_file: str,
    weights_folder: str,
    seed: str,
) -> FollowedRun:
    """Read a run and the parameters of its analysis.

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
    )
    if not run.steps:
        raise ValueError(f"{weights_folder} holds no checkpoints.")
    return run
