"""Train one run and write its history and how it ended.

A run that was killed continues from the state that it saved beside its outputs.
"""

import fcntl
import hashlib
import os
import sys
import time
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import torch
from safetensors.torch import load_file, save_file
from tqdm import tqdm

from mbc.conditions import Condition, parse
from mbc.task import Sequences, from_strings, sequences
from mbc.training import RunState, start, train
from stages.files import read_yaml, refusing, write_json, write_whole

SECONDS_BETWEEN_SAVES = 20


def main(
    condition_file: str,
    dataset_file: str,
    seed: str,
    run_folder: str,
    weights_file: str,
    state_folder: str,
    initial_weights_file: str | None = None,
) -> None:
    """Write <run>/history.csv and <run>/outcome.json, and the last weights to a file of their own.

    With ``initial_weights_file`` the run starts from another run's last weights.
    """
    condition = parse(Condition, read_yaml(Path(condition_file)), condition_file)
    data = _read_dataset(dataset_file, condition)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    inputs = [condition_file, dataset_file]
    initial_weights = None
    if initial_weights_file is not None:
        inputs.append(initial_weights_file)
        initial_weights = load_file(initial_weights_file, device=str(device))
    identity = _identity(inputs, seed)
    folder = Path(state_folder, Path(run_folder).name)
    with _only_process(folder):
        _log(folder, f"device {device}, {torch.get_num_threads()} threads, identity {identity}")
        state = start(condition, data, int(seed), device, initial_weights)
        rows: list[dict] = []
        saved = _load(folder / "state.pt", identity)
        if saved is not None:
            state.restore(saved["state"])
            rows = saved["rows"]
            print(f"{folder.name}: continuing at step {state.step}.")
        _train(condition, data, int(seed), state, rows, device, folder, identity)
        outcome = {
            "status": state.status,
            "last_step": state.step,
            "diverged_at": state.diverged_at,
            "versions": {name: version(name) for name in ("torch", "transformer_lens", "numpy")},
        }
        table = pd.DataFrame(rows)
        write_whole(Path(run_folder, "history.csv"), lambda path: table.to_csv(path, index=False))
        weights = {name: w.detach().cpu() for name, w in state.network.weights.items()}
        write_whole(Path(weights_file), partial(save_file, weights))
        write_json(Path(run_folder, "outcome.json"), outcome)
        (folder / "state.pt").unlink(missing_ok=True)
        _log(folder, f"{state.status} at step {state.step}")


def _train(
    condition: Condition,
    data: Sequences,
    seed: int,
    state: RunState,
    rows: list[dict],
    device: torch.device,
    folder: Path,
    identity: str,
) -> None:
    """Train to the end, appending to ``rows`` and saving the state now and then."""
    saved = time.monotonic()
    with tqdm(
        total=condition.max_steps, initial=state.step, unit="step", desc=folder.name, mininterval=5
    ) as progress:
        for row in train(condition, data, seed, state, device):
            rows.append(row.flat())
            progress.set_postfix(
                candidate_loss=f"{row.evaluation.candidate_loss:.3f}",
                z_gap=f"{row.evaluation.z_gap:.3f}",
                refresh=False,
            )
            progress.update(state.step - progress.n)
            if time.monotonic() - saved > SECONDS_BETWEEN_SAVES:
                snapshot = {"identity": identity, "rows": rows, "state": state.snapshot()}
                write_whole(folder / "state.pt", partial(torch.save, snapshot))
                saved = time.monotonic()


def _load(path: Path, identity: str) -> dict | None:
    """Return a saved state if there is one of this very run; say why where it is not used."""
    if not path.exists():
        return None
    try:
        saved = torch.load(path, weights_only=True, map_location="cpu")
        belongs = saved["identity"] == identity
    except Exception as error:  # whatever is wrong with it, the run can start
        print(f"{path} cannot be read ({type(error).__name__}): starting at step 0.")
        return None
    if not belongs:
        print(f"{path} belongs to other parameters, data or code: starting at step 0.")
    return saved if belongs else None


def _read_dataset(dataset_file: str, condition: Condition) -> Sequences:
    table = pd.read_csv(dataset_file, dtype=str, keep_default_na=False)
    return sequences(
        from_strings(list(table.itertuples(index=False, name=None))), condition.direction
    )


def _identity(inputs: list[str], seed: str) -> str:
    """Return a digest of all that decides a run: condition, data, seed and code."""
    code = sorted(
        module.__file__
        for name, module in sys.modules.items()
        if name.split(".")[0] in ("mbc", "stages", "__main__") and getattr(module, "__file__", None)
    )
    digest = hashlib.sha256(seed.encode())
    for path in (*inputs, *code):
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()


def _log(folder: Path, line: str) -> None:
    with (folder / "log.txt").open("a") as log:
        log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")


@contextmanager
def _only_process(folder: Path):
    """Hold the run's lock; the system releases it when this process ends, however it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{folder.name} is being trained by another process.") from None
        yield


if __name__ == "__main__":
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # equal runs on CUDA need it
    torch.use_deterministic_algorithms(True)
    with refusing():
        main(*sys.argv[1:])
