"""Figures of the experiments beside the scaling law; see `mbc.figures` for what they share."""

import pandas as pd

from mbc.figures import (
    DASHES,
    MARKERS,
    Figure,
    colours,
    draw_means,
    draw_waiting_times,
    new_figure,
)


def effect(runs: pd.DataFrame, x: str, name: str, *, logarithmic: bool = True) -> Figure:
    """Draw tau against something that changes gradient noise, in steps and in examples (Figure 2).

    Args:
        runs: columns ``x``, tau, tau_examples, tau_status.
        x: the column on the horizontal axis.
        name: its name and unit.
        logarithmic: whether the horizontal axis is.
    """
    figure, axes = new_figure(panels=2)
    for axis, y, unit in zip(axes, ("tau", "tau_examples"), ("steps", "examples"), strict=True):
        draw_means(axis, runs, x, y)
        draw_waiting_times(axis, runs, x, y)
        axis.set(yscale="log", xlabel=name, ylabel=f"waiting time τ ({unit})")
        if logarithmic:
            axis.set_xscale("log")
        _ticks_at_values(axis, runs[x], rotation=30)
    axes[0].legend()
    return figure


CASCADE = {
    "onset": "z-gap of the first character",
    "onset_string": "z-gap of the whole answer",
    "loss_onset": "candidate loss below 0.9 log k",
    "tau": "waiting time τ",
}
"""Moments of the cascade, in the paper's order, and their names in the figure."""


def cascade(runs: pd.DataFrame) -> Figure:
    """Draw by k when the selector begins to matter and when the loss follows (Figure 3a).

    Args:
        runs: columns k and, for each of `CASCADE`, the moment and its status.
    """
    figure, axis = new_figure()
    for (moment, name), colour, marker, dash in zip(
        CASCADE.items(), colours(len(CASCADE)), MARKERS, DASHES, strict=False
    ):
        status = f"{moment}_status"
        draw_means(axis, runs, "k", moment, status=status, colour=colour, dash=dash)
        style = {"status": status, "colour": colour, "marker": marker, "label": name}
        draw_waiting_times(axis, runs, "k", moment, **style)
    axis.set(xscale="log", yscale="log", xlabel="ambiguity k", ylabel="step")
    _ticks_at_values(axis, runs["k"])
    axis.legend(fontsize="small")
    return figure


def survival(curves: pd.DataFrame) -> Figure:
    """Draw Kaplan-Meier curves, one panel a sweep: the share of runs still without transition.

    Args:
        curves: columns sweep, value, step, survival, low, high, n_runs.
    """
    sweeps = list(curves["sweep"].unique())
    figure, axes = new_figure(panels=max(2, len(sweeps)))
    for axis, sweep in zip(axes, sweeps, strict=False):
        of_sweep = curves[curves["sweep"] == sweep]
        values = sorted(of_sweep["value"].unique())
        for index, (value, colour) in enumerate(zip(values, colours(len(values)), strict=True)):
            curve = of_sweep[of_sweep["value"] == value]
            style = {"color": colour, "linestyle": DASHES[index % len(DASHES)]}
            axis.step(curve["step"], curve["survival"], where="post", label=f"{value:g}", **style)
            if curve["n_runs"].iloc[0] > 1:
                axis.fill_between(
                    curve["step"],
                    curve["low"],
                    curve["high"],
                    step="post",
                    color=colour,
                    alpha=0.15,
                )
        axis.set(
            xscale="symlog",
            xlabel="step",
            ylabel="share of runs without transition",
            ylim=(0, 1.05),
        )
        axis.legend(title=sweep.replace("_", " "))
    return figure


def directions(runs: pd.DataFrame) -> Figure:
    """Draw forward, backward and transferred waiting times by k, by both criteria (Table 2).

    Args:
        runs: columns k, kind (``backward``, ``forward``, ``backward after forward``), tau,
            tau_status, character_tau, character_tau_status.
    """
    figure, axes = new_figure(panels=2)
    titles = ("candidate loss below 0.5 log k", "loss per character below 0.5 log 36")
    for axis, moment, title in zip(axes, ("tau", "character_tau"), titles, strict=True):
        kinds = list(runs["kind"].unique())
        for kind, colour, marker, dash in zip(
            kinds, colours(len(kinds)), MARKERS, DASHES, strict=False
        ):
            of_kind = runs[runs["kind"] == kind]
            status = f"{moment}_status"
            draw_means(axis, of_kind, "k", moment, status=status, colour=colour, dash=dash)
            style = {"status": status, "colour": colour, "marker": marker, "label": kind}
            draw_waiting_times(axis, of_kind, "k", moment, **style)
        axis.set(xscale="log", yscale="log", xlabel="ambiguity k", ylabel="waiting time (steps)")
        _ticks_at_values(axis, runs["k"])
        axis.set_title(title, fontsize="medium")
    axes[0].legend(fontsize="small")
    return figure


def linear(table: pd.DataFrame) -> Figure:
    """Draw candidate loss over log k of linear networks beside transformers (appendix G).

    Args:
        table: columns run, k, network, step, ratio.
    """
    figure, axis = new_figure()
    values = sorted(table["k"].unique())
    for k, colour in zip(values, colours(len(values)), strict=True):
        for network, dash in (("transformer", "-"), ("linear", "--")):
            chosen = table[(table["k"] == k) & (table["network"] == network)]
            for number, (_, run) in enumerate(chosen[chosen["step"] > 0].groupby("run")):
                label = f"{network}, k = {k}" if number == 0 else None
                axis.plot(run["step"], run["ratio"], color=colour, linestyle=dash, label=label)
    axis.axhline(1, color="0.5", linewidth=0.8, linestyle=":")
    axis.set(xscale="log", xlabel="step", ylabel="candidate loss / log k")
    axis.set_ylim(bottom=0)
    axis.legend(fontsize="small")
    return figure


def structured(table: pd.DataFrame) -> Figure:
    """Draw what a network knows of B and of z, structured fibres beside distinct ones.

    Args:
        table: columns run, k, fibre, step, and ratio (loss of the first character / log k), b_gap,
            z_gap.
    """
    figure, axes = new_figure(panels=2)
    for axis, fibre in zip(axes, ("distinct", "structured"), strict=True):
        of_fibre = table[(table["fibre"] == fibre) & (table["step"] > 0)]
        shades = ("0.0", "0.4", "0.7")
        values = sorted(of_fibre["k"].unique())
        for k, dash in zip(values, DASHES, strict=False):
            of_k = of_fibre[of_fibre["k"] == k]
            for number, (_, run) in enumerate(of_k.groupby("run")):
                for column, shade in zip(("ratio", "b_gap", "z_gap"), shades, strict=True):
                    name = {"ratio": "loss / log k"}.get(column, column.replace("_", "-"))
                    label = f"{name}, k = {k}" if number == 0 else None
                    axis.plot(run["step"], run[column], color=shade, linestyle=dash, label=label)
        axis.set_title(f"{fibre} fibres, first character", fontsize="medium")
        axis.set(xscale="log", xlabel="step", ylabel="loss / log k; gaps in nats", ylim=(0, 4))
        axis.xaxis.set_minor_formatter("")
    axes[1].legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.01, 1))
    return figure


def _ticks_at_values(axis, values: pd.Series, rotation: float = 0) -> None:
    """Put the ticks of the horizontal axis at the different values, and nowhere else."""
    ticks = sorted(values.unique())
    axis.set_xticks(ticks, [f"{value:g}" for value in ticks], rotation=rotation)
    axis.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
