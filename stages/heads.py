"""Ablate every head of a followed run, and measure how much each looks at the selector."""

import sys
from dataclasses import asdict

from mbc.attention import attention_to_z, draw_sequences
from mbc.checkpoints import choose, choose_phases
from mbc.heads import ablate_heads, ablation_sample
from stages.files import refusing
from stages.followed_run import FollowedRun, write_analysis


def analyse(run: FollowedRun) -> dict:
    """Return ``phases``, ablations at one checkpoint of each phase, and ``attention`` over time."""
    most = run.settings.ablation_examples
    sample = ablation_sample(run.data, most, run.seed, run.device)
    phases = {}
    for phase, chosen in choose_phases(run.steps, run.tau).items():
        ablated = ablate_heads(run.condition, run.weights(chosen.step), sample)
        phases[phase] = {"step": chosen.step, "fraction": chosen.fraction, **asdict(ablated)}
    tokens = draw_sequences(run.data, most, run.seed).to(run.device)
    attention = []
    for chosen in choose(run.steps, run.tau, [*run.settings.fractions, float("inf")]):
        looked = attention_to_z(run.condition, run.weights(chosen.step), tokens)
        attention.append({**asdict(chosen), **asdict(looked)})
    return {"phases": phases, "attention": attention}


if __name__ == "__main__":
    with refusing():
        write_analysis(analyse, *sys.argv[1:])
