"""What a run needs to go on after it was killed, kept outside its outputs.

A folder holds the state last saved, the one before it, and the checkpoints so far. Everything is
tied to the identity of the run: condition, data, seed and code.
"""

import fcntl
import hashlib
import io
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from stages.files import write_whole

NEWEST, BEFORE = "state.pt", "state_before.pt"


@contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """Hold the lock of a run; the system releases it when this process ends, however it ends.

    Raises:
        ValueError: if another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{folder.name} is being trained by another process.") from None
        yield


def identity_of(inputs: list[str], seed: str) -> str:
    """Return a digest of all that decides a run: input files, seed and the code now imported."""
    code = sorted(
        module.__file__
        for name, module in sys.modules.items()
        if name.split(".")[0] in ("mbc", "stages", "__main__") and getattr(module, "__file__", None)
    )
    digest = hashlib.sha256(seed.encode())
    for path in (*inputs, *code):
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()


def save(folder: Path, identity: str, content: dict) -> None:
    """Save a state; the one saved before is kept beside it until the next time."""
    buffer = io.BytesIO()
    torch.save({"identity": identity, **content}, buffer)
    if (folder / NEWEST).exists():
        (folder / NEWEST).replace(folder / BEFORE)
    write_whole(folder / NEWEST, buffer.getvalue())


def load(folder: Path, identity: str) -> dict | None:
    """Return the newest state of this very run that can be read, saying why others are not used."""
    for name in (NEWEST, BEFORE):
        path = folder / name
        if not path.exists():
            continue
        try:
            saved = torch.load(path, weights_only=True, map_location="cpu")
            belongs = saved["identity"] == identity
        except Exception as error:  # whatever is wrong with it, the run can go on without it
            print(f"{path} cannot be read ({type(error).__name__}): it is not used.")
            continue
        if belongs:
            return saved
        print(f"{path} belongs to other parameters, data or code: it is not used.")
    return None


def remove(folder: Path, *names: str) -> None:
    """Remove saved states, and files or folders by name."""
    for name in (NEWEST, BEFORE, *names):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def log(folder: Path, line: str) -> None:
    """Add a line with the time to the run's log."""
    with (folder / "log.txt").open("a") as file:
        file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")
