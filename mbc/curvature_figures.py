"""Figures of curvature and gradient noise; see `mbc.figures` for what all figures share."""

import math

import pandas as pd

from mbc.checkpoints import PHASES
from mbc.figures import (
    Figure,
    legend_below,
    new_figure,
    panel_grid,
    plain_ticks,
    styles,
    ticks_at_values,
)

NOT_CONVERGED = "X"
"""Marker of an eigenvalue that did not converge; no run has it."""

HOLLOW = "hollow: its direction does not curve downward on\nthe other sample, or its errors reach 0"
"""Legend entry of `curvature`: not `mbc.curvature.Curvature.negative`."""


def curvature(table: pd.DataFrame) -> Figure:
    """Draw the largest and the smallest eigenvalue of the Hessian by phase (appendix J).

    Both samples are drawn, and a line joins their means. A mark of the smallest is hollow where it
    does not count as negative (`mbc.curvature.Curvature`), and one that did not converge is a
    cross, as the legend says; bars span residual and rounding.

    Args:
        table: columns run, k, phase, sample, largest, largest_residual, largest_converged,
            smallest, smallest_residual, smallest_converged, rounding, negative.
    """
    figure, axes = new_figure(panels=2)
    phases = [phase for phase in PHASES if phase in set(table["phase"])]
    runs = list(table["run"].unique())
    for index, (run, (colour, marker, dash)) in enumerate(
        zip(runs, styles(len(runs)), strict=True)
    ):
        of_run = table[table["run"] == run]
        style = {"color": colour, "linestyle": dash}
        axes[0].plot([], [], marker=marker, label=run, **style)  # line and mark in one legend entry
        shift = 0.08 * (index - (len(runs) - 1) / 2)
        for axis, end in zip(axes, ("largest", "smallest"), strict=True):
            means = of_run.groupby("phase")[end].mean()
            places = [i + shift for i, phase in enumerate(phases) if phase in means.index]
            present = [phase for phase in phases if phase in means.index]
            axis.plot(places, means[present], **style)
            for place, phase in zip(places, present, strict=True):
                _marks(axis, of_run[of_run["phase"] == phase], end, place, marker, colour)
    for axis, end in zip(axes, ("largest", "most negative"), strict=True):
        axis.set(xlabel="phase of the run", ylabel=f"{end} eigenvalue\nof the Hessian (nats)")
        axis.set_xticks(range(len(phases)), phases)
    axes[1].axhline(0, color="0.5", linewidth=0.8, linestyle=":")
    for shape, fill, name in (
        ("h", "none", HOLLOW),
        (NOT_CONVERGED, "0.3", "cross: not converged"),
    ):
        axes[0].scatter([], [], marker=shape, s=60, facecolors=fill, edgecolors="0.3", label=name)
    legend_below(figure, columns=3)
    return figure


def _marks(axis, values: pd.DataFrame, end: str, place: float, marker: str, colour) -> None:
    """Draw one end of the spectrum of one run and phase, a mark for each sample."""
    error = values[f"{end}_residual"] + (values["rounding"] if end == "smallest" else 0)
    filled = end == "largest" or values["negative"].astype(bool).all()
    converged = values[f"{end}_converged"].astype(bool)
    for chosen, shape in ((converged, marker), (~converged, NOT_CONVERGED)):
        axis.errorbar(
            [place] * chosen.sum(),
            values.loc[chosen, end],
            yerr=error[chosen],
            fmt=shape,
            color=colour,
            markersize=8 if shape == NOT_CONVERGED else None,
            markerfacecolor=colour if filled else "none",
        )


DIRECTIONS = {
    "largest 1": "largest eigenvalue",
    "largest 2": "second largest",
    "largest 3": "third largest",
    "smallest": "most negative",
}
"""Titles of the panels of `gradient_noise`, in their order."""


def gradient_noise(table: pd.DataFrame) -> Figure:
    """Draw the noise along each eigenvector, relative to noise without direction (section 6).

    Args:
        table: columns run, batch_size, direction, eigenvalue, share_over_isotropic, low, high.
    """
    present = set(table["direction"])
    # a direction without a title of its own comes last, under its own name
    directions = [d for d in DIRECTIONS if d in present] + sorted(present - set(DIRECTIONS))
    rows, columns = math.ceil(len(directions) / 2), min(2, len(directions))
    figure, axes = panel_grid(rows, columns, height=3.2, sharex=True, sharey=True)
    for axis, direction in zip(axes.flat, directions, strict=False):
        _noise_along(axis, table, direction)
    for row in axes:
        row[0].set_ylabel("noise along it /\nnoise without direction")
    for axis in axes[-1]:
        axis.set_xlabel("batch size (examples)")
        ticks_at_values(axis, table["batch_size"])
    plain_ticks(axes[0, 0].yaxis)
    for axis in axes.flat[len(directions) :]:
        axis.set_axis_off()
    legend_below(figure, columns=3)
    return figure


def _noise_along(axis, table: pd.DataFrame, direction: str) -> None:
    runs = _run_names(table)
    for index, (run, (colour, marker, dash)) in enumerate(
        zip(runs, styles(len(runs)), strict=True)
    ):
        chosen = table[(table["run"] == run) & (table["direction"] == direction)]
        centre = chosen["share_over_isotropic"]
        axis.errorbar(
            chosen["batch_size"] * (1 + 0.06 * index),
            centre,
            yerr=[centre - chosen["low"], chosen["high"] - centre],
            color=colour,
            linestyle=dash,
            marker=marker,
            label=runs[run],
        )
    axis.axhline(1, color="0.5", linewidth=0.8, linestyle=":", label="noise without direction")
    axis.set(xscale="log", yscale="log")
    axis.set_title(DIRECTIONS.get(direction, direction), fontsize="medium")


def _run_names(table: pd.DataFrame) -> dict[str, str]:
    """Return a name for each run, which says at what batch sizes of the others it has no noise."""
    sizes = set(table["batch_size"])
    names = {}
    for run, of_run in table.groupby("run", sort=False):
        missing = ", ".join(f"{size:g}" for size in sorted(sizes - set(of_run["batch_size"])))
        names[run] = f"{run}, not {missing}:\nover half of its examples" if missing else run
    return names
