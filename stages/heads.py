"""Ablate every head of a followed run, and measure how much each looks at the selector."""

import sys
from dataclasses import asdict
from pathlib import Path

import torch

from mbc.attention import attention_to_z, draw_sequences
from mbc.checkpoints import choose, choose_phases
from mbc.heads import ablate_heads, ablation_sample
from stages.files import refusing, write_json
from stages.followed_run import read_followed_run

CPU = torch.device("cpu")


def main(
    params_file: str,
    condition_file: str,
    dataset_file: str,
    history_file: str,
    weights_folder: str,
    seed: str,
    metrics_file: str,
) -> None:
    """Write ``phases``, ablations at one checkpoint of each phase, and ``attention`` over time."""
    run = read_followed_run(
        params_file, condition_file, dataset_file, history_file, weights_folder, seed
    )
    most = run.settings.ablation_examples
    sample = ablation_sample(run.data, most, run.seed, CPU)
    phases = {}
    for phase, chosen in choose_phases(run.steps, run.tau).items():
        ablated = ablate_heads(run.condition, run.weights(chosen.step), sample)
        phases[phase] = {"step": chosen.step, "fraction": chosen.fraction, **asdict(ablated)}
    tokens = draw_sequences(run.data, most, run.seed)
    attention = []
    for chosen in choose(run.steps, run.tau, [*run.settings.fractions, float("inf")]):
        looked = attention_to_z(run.condition, run.weights(chosen.step), tokens)
        attention.append({**asdict(chosen), **asdict(looked)})
    results = {"k": run.condition.k, "tau": asdict(run.tau)}
    write_json(Path(metrics_file), {**results, "phases": phases, "attention": attention})


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
