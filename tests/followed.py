"""A small followed run on disk, as the stages that look into runs read it."""

import pandas as pd
from safetensors.torch import save_file

from mbc.task import draw_map, sequences, to_strings
from mbc.training import Checkpoint, start, train
from stages.files import checkpoint_name, write_json, write_yaml
from tests.conftest import CPU, initial


def write_followed_run(folder, condition, params, seed=0):
    """Train a condition and return the arguments of a stage, the last one its metrics file."""
    ambiguous_map = draw_map(condition.k, condition.n_b, condition.fibre, seed)
    data = sequences(ambiguous_map, condition.direction)
    state = start(condition, initial(condition, seed), CPU)
    rows = []
    weights = folder / "weights"
    weights.mkdir(parents=True)
    for news in train(condition, data, seed, state, CPU):
        if isinstance(news, Checkpoint):
            kept = {name: weight.detach() for name, weight in news.weights.items()}
            save_file(kept, weights / checkpoint_name(news.step))
        else:
            rows.append(news.flat())
    write_yaml(folder / "params.yaml", params)
    write_yaml(folder / "train.yaml", condition.model_dump())
    table = pd.DataFrame(to_strings(ambiguous_map), columns=["b", "z", "a"])
    table.to_csv(folder / "dataset.csv", index=False)
    pd.DataFrame(rows).to_csv(folder / "history.csv", index=False)
    outcome = {"status": state.status, "diverged_at": state.diverged_at}
    write_json(folder / "outcome.json", outcome)
    names = ("params.yaml", "train.yaml", "dataset.csv", "history.csv", "weights")
    return [*(str(folder / name) for name in names), str(seed), str(folder / "metrics.json")]
