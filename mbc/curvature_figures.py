"""Figures of curvature and gradient noise; see `mbc.figures` for what all figures share."""

import pandas as pd

from mbc.checkpoints import PHASES
from mbc.figures import DASHES, MARKERS, Figure, colours, new_figure


def curvature(table: pd.DataFrame) -> Figure:
    """Draw the largest and the smallest eigenvalue of the Hessian by phase (appendix J).

    Both samples are drawn, and joined by their mean. A mark of the smallest is hollow where it is
    not distinguishable from 0; bars span residual and rounding.

    Args:
        table: columns run, k, phase, sample, largest, largest_residual, smallest,
            smallest_residual, rounding, negative.
    """
    figure, axes = new_figure(panels=2)
    phases = [phase for phase in PHASES if phase in set(table["phase"])]
    runs = list(table["run"].unique())
    for index, (run, colour) in enumerate(zip(runs, colours(len(runs)), strict=True)):
        of_run = table[table["run"] == run]
        style = {"color": colour, "linestyle": DASHES[index % len(DASHES)]}
        shift = 0.08 * (index - (len(runs) - 1) / 2)
        for axis, end in zip(axes, ("largest", "smallest"), strict=True):
            means = of_run.groupby("phase")[end].mean()
            places = [i + shift for i, phase in enumerate(phases) if phase in means.index]
            present = [phase for phase in phases if phase in means.index]
            axis.plot(places, means[present], label=run, **style)
            for place, phase in zip(places, present, strict=True):
                values = of_run[of_run["phase"] == phase]
                error = values[f"{end}_residual"] + (values["rounding"] if end == "smallest" else 0)
                told = end == "largest" or values["negative"].astype(bool).all()
                axis.errorbar(
                    [place] * len(values),
                    values[end],
                    yerr=error,
                    fmt=MARKERS[index % len(MARKERS)],
                    color=colour,
                    markerfacecolor=colour if told else "none",
                )
    for axis, end in zip(axes, ("largest", "smallest"), strict=True):
        axis.set(xlabel="phase of the run", ylabel=f"{end} eigenvalue of the Hessian (nats)")
        axis.set_xticks(range(len(phases)), phases)
    axes[1].axhline(0, color="0.5", linewidth=0.8, linestyle=":")
    axes[0].legend(fontsize="small")
    return figure


def gradient_noise(table: pd.DataFrame) -> Figure:
    """Draw the noise along each eigenvector, relative to noise without direction (section 6).

    Args:
        table: columns run, batch_size, direction, eigenvalue, share_over_isotropic, low, high.
    """
    directions = list(dict.fromkeys(table["direction"]))
    figure, axes = new_figure(panels=max(2, len(directions)))
    runs = list(table["run"].unique())
    for axis, direction in zip(axes, directions, strict=False):
        for index, (run, colour) in enumerate(zip(runs, colours(len(runs)), strict=True)):
            chosen = table[(table["run"] == run) & (table["direction"] == direction)]
            centre = chosen["share_over_isotropic"]
            axis.errorbar(
                chosen["batch_size"] * (1 + 0.06 * index),
                centre,
                yerr=[centre - chosen["low"], chosen["high"] - centre],
                color=colour,
                linestyle=DASHES[index % len(DASHES)],
                marker=MARKERS[index % len(MARKERS)],
                label=run,
            )
        axis.axhline(1, color="0.5", linewidth=0.8, linestyle=":")
        axis.set(xscale="log", yscale="log", xlabel="batch size (examples)")
        axis.set_ylabel("share of the noise / isotropic share")
        axis.set_title(f"{direction} eigenvalue", fontsize="medium")
        ticks = sorted(table["batch_size"].unique())
        axis.set_xticks(ticks, [f"{size}" for size in ticks])
        axis.minorticks_off()
    axes[0].legend(fontsize="small")
    for axis in axes[len(directions) :]:
        axis.set_axis_off()
    return figure
