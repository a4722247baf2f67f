"""Train one run and write its history, how it ended, and its weights.

A run that was killed continues from the state that it saved outside its outputs.
"""

import shutil
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import torch
from safetensors.torch import load_file
from safetensors.torch import save as safetensors
from tqdm import tqdm

from mbc.conditions import Condition, parse
from mbc.model import Weights
from mbc.training import Checkpoint, start, train
from stages import saved_state
from stages.examples import read_examples
from stages.files import checkpoint_name, read_yaml, refusing, write_json, write_text, write_whole
from stages.processor import set_up

SECONDS_BETWEEN_SAVES = 20


def main(
    condition_file: str,
    dataset_file: str,
    initial_weights_file: str,
    seed: str,
    run_folder: str,
    weights_folder: str,
    state_folder: str,
) -> None:
    """Write <run>/history.csv and <run>/outcome.json, and checkpoints and last weights beside."""
    condition = parse(Condition, read_yaml(Path(condition_file)), condition_file)
    folder = Path(state_folder, Path(run_folder).name)
    with saved_state.only_process(folder):
        identity = saved_state.identity_of(
            [condition_file, dataset_file, initial_weights_file], seed
        )
        rows, outcome = _train(
            condition, dataset_file, initial_weights_file, seed, folder, identity
        )
        write_text(Path(run_folder, "history.csv"), pd.DataFrame(rows).to_csv(index=False))
        shutil.rmtree(weights_folder, ignore_errors=True)
        shutil.copytree(folder / "weights", weights_folder)
        write_json(Path(run_folder, "outcome.json"), outcome)
        saved_state.remove(folder, "weights")
        saved_state.log(folder, f"{outcome['status']} at step {outcome['last_step']}")


def _train(
    condition: Condition,
    dataset_file: str,
    initial_weights_file: str,
    seed: str,
    folder: Path,
    identity: str,
) -> tuple[list[dict], dict]:
    """Train to the end; return history and outcome, and leave the weights in <folder>/weights."""
    device = set_up()
    saved_state.log(folder, f"{device}, {torch.get_num_threads()} threads, identity {identity}")
    data = read_examples(dataset_file, condition)
    state = start(condition, load_file(initial_weights_file), device)
    rows: list[dict] = []
    saved = saved_state.load(folder, identity)
    if saved is None:
        saved_state.remove(folder, "weights")
    else:
        state.restore(saved["state"])
        rows = saved["rows"]
        print(f"{folder.name}: continuing at step {state.step}.")
    saved_at = time.monotonic()
    with tqdm(
        total=condition.max_steps, initial=state.step, unit="step", desc=folder.name, mininterval=5
    ) as progress:
        for news in train(condition, data, int(seed), state, device):
            if isinstance(news, Checkpoint):
                _write_weights(folder / "weights" / checkpoint_name(news.step), news.weights)
                continue
            rows.append(news.flat())
            progress.set_postfix(
                candidate_loss=f"{news.evaluation.candidate_loss:.3f}",
                z_gap=f"{news.evaluation.z_gap:.3f}",
                refresh=False,
            )
            progress.update(state.step - progress.n)
            if time.monotonic() - saved_at > SECONDS_BETWEEN_SAVES:
                saved_state.save(folder, identity, {"rows": rows, "state": state.snapshot()})
                saved_at = time.monotonic()
    _write_weights(folder / "weights" / "last.safetensors", state.network.weights)
    outcome = {
        "status": state.status,
        "last_step": state.step,
        "diverged_at": state.diverged_at,
        "versions": {name: version(name) for name in ("torch", "transformer_lens", "numpy")},
    }
    return rows, outcome


def _write_weights(path: Path, weights: Weights) -> None:
    write_whole(path, safetensors({name: w.detach().cpu() for name, w in weights.items()}))


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
