"""Figures, drawn from tidy tables alone; each function takes the table and returns the figure.

Colours run from dark to light, and line style or marker says the same again, so that every figure
reads in greyscale. Nothing here needs a display.
"""

import math
import os
from pathlib import Path

import numpy as np
import pandas as pd

os.environ["MPLBACKEND"] = "agg"  # whatever the environment says, and before matplotlib reads it

import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy import stats

DASHES = ["-", "--", "-.", ":"]
MARKERS = ["o", "s", "D", "^", "v"]

LOG_TICKS = ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5))
"""Leading digits of ticks on a logarithmic axis, the sparsest first."""

ANATOMY_PANELS = {
    "candidate loss\n(nats)": ["candidate_loss"],
    "loss by character\n(nats)": ["loss_character_", "loss_eos"],
    "mass on the fibre's\nfirst characters": ["fibre_mass"],
    "gaps of the first\ncharacter (nats)": ["z_gap", "b_gap"],
    "gaps of the whole\nanswer (nats)": ["z_gap_string", "b_gap_string"],
}

MOMENT_SHADES = ["0.7", "0.45"]
"""Greys of the moments in the anatomy, in turn."""

GAP_NAMES = {
    "z_gap": "z-gap of the first character",
    "b_gap": "B-gap of the first character",
    "z_gap_string": "z-gap of the whole answer",
    "b_gap_string": "B-gap of the whole answer",
}
"""Gaps drawn by `anatomy`, and their names in its legends."""


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG; equal figures give equal bytes."""
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def loss_curves(table: pd.DataFrame) -> Figure:
    """Draw candidate loss against step for several k, each with its log k (the paper's Figure 1).

    Args:
        table: columns run, k, step, candidate_loss.
    """
    figure, axis = new_figure()
    values = sorted(table["k"].unique())
    for k, (colour, marker, dash) in zip(values, styles(len(values)), strict=True):
        for number, (_, run) in enumerate(table[table["k"] == k].groupby("run")):
            run = run[run["step"] > 0]
            axis.plot(
                run["step"],
                run["candidate_loss"],
                color=colour,
                linestyle=dash,
                marker=marker,
                markersize=4,
                markevery=0.12,  # evenly along the curve: long runs have a thousand evaluations
                label=f"{k}" if number == 0 else None,
            )
        axis.axhline(math.log(k), color=colour, linewidth=0.6, linestyle=":")
    axis.set(xscale="log", xlabel="step", ylabel="candidate loss (nats); dotted: log k")
    axis.set_ylim(bottom=0)
    plain_ticks(axis.xaxis)
    # the largest k is the highest curve, so it stands highest in the legend, too
    draw_legend(axis, title="k", bbox_to_anchor=(1.01, 1), loc="upper left", reverse=True)
    return figure


def waiting_times(
    runs: pd.DataFrame, curve: pd.DataFrame, exponent_text: str, confidence: float
) -> Figure:
    """Draw tau against dataset size with the fitted power law and its band (Figure 4).

    Args:
        runs: columns dataset_size, tau, tau_status, and paper_tau: the paper's waiting time, which
            may be missing.
        curve: columns dataset_size, tau, low, high; may be empty.
        exponent_text: legend entry of the curve.
        confidence: coverage of the band, such as 0.95.
    """
    figure, axis = new_figure()
    if not curve.empty:
        band = {"color": "0.85", "label": f"{100 * confidence:g}% band"}
        axis.fill_between(curve["dataset_size"], curve["low"], curve["high"], **band)
        axis.plot(curve["dataset_size"], curve["tau"], color="0.3", label=exponent_text)
    draw_waiting_times(axis, runs, "dataset_size")
    draw_papers(axis, runs, "dataset_size")
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="dataset size D = n_b · k (examples)",
        ylabel="waiting time τ (steps)",
    )
    plain_ticks(axis.xaxis, axis.yaxis)
    draw_legend(axis)
    return figure


def fixed_size(runs: pd.DataFrame) -> Figure:
    """Draw tau against k where the dataset size is held fixed (the paper's Figure 5).

    Args:
        runs: columns k, nominal_size, tau, tau_status, and paper_tau: the paper's waiting time,
            which may be missing.
    """
    figure, axis = new_figure()
    sizes = sorted(runs["nominal_size"].unique())
    for size, (colour, marker, dash) in zip(sizes, styles(len(sizes)), strict=True):
        of_size = runs[runs["nominal_size"] == size]
        draw_means(axis, of_size, "k", colour=colour, dash=dash)
        draw_waiting_times(
            axis, of_size, "k", colour=colour, marker=marker, label=f"D = {size:,.0f}"
        )
        draw_papers(axis, of_size, "k", colour=colour, label=f"the paper's, D = {size:,.0f}")
    axis.set(xscale="log", yscale="log", xlabel="ambiguity k", ylabel="waiting time τ (steps)")
    ticks_at_values(axis, runs["k"])
    axis.yaxis.minorticks_off()
    low, high = axis.get_ylim()
    if low > 0:  # not so where no run has a tau
        axis.set_ylim(low / 2, high * 2)
    plain_ticks(axis.yaxis)
    legend_below(figure, columns=2)  # nowhere within would it hide nothing
    return figure


def threshold_exponents(table: pd.DataFrame, confidence: float) -> Figure:
    """Draw the scaling exponent by the threshold that defines tau (the paper's appendix D).

    Args:
        table: columns threshold, exponent, low, high; low and high may be missing values.
        confidence: coverage of the intervals, such as 0.95.
    """
    figure, axis = new_figure()
    errors = np.abs(table[["low", "high"]].to_numpy(float).T - table["exponent"].to_numpy(float))
    axis.errorbar(
        table["threshold"], table["exponent"], yerr=errors, color="black", marker="o", capsize=3
    )
    axis.set(
        xlabel="threshold as a fraction of log k",
        ylabel=f"exponent of τ in D, {100 * confidence:g}% bootstrap interval",
    )
    return figure


def anatomy(history: pd.DataFrame, k: int, moments: dict[str, float]) -> Figure:
    """Draw all that a history holds of one run on one time axis, linear as the paper tells it.

    Args:
        history: rows of one run's history.
        k: targets in each fibre.
        moments: steps to mark, by name.
    """
    history = history[history["step"] > 0]
    figure, axes = plt.subplots(
        len(ANATOMY_PANELS), 1, figsize=(7, 10), sharex=True, layout="constrained"
    )
    for axis, (title, prefixes) in zip(axes, ANATOMY_PANELS.items(), strict=True):
        columns = [c for c in history.columns if any(_is_series(c, p) for p in prefixes)]
        for index, (column, colour) in enumerate(zip(columns, colours(len(columns)), strict=True)):
            axis.plot(
                history["step"],
                history[column],
                color=colour,
                linestyle=DASHES[index % len(DASHES)],
                label=GAP_NAMES.get(column, column.replace("loss_", "").replace("_", " ")),
            )
        axis.set_ylabel(title)
        if len(columns) > 1:
            axis.legend(fontsize="x-small", loc="center left")
        for index, (name, step) in enumerate(sorted(moments.items(), key=lambda one: one[1])):
            style = {"linestyle": DASHES[::-1][index % len(DASHES)], "linewidth": 1.2}
            line = axis.axvline(step, color=MOMENT_SHADES[index % len(MOMENT_SHADES)], **style)
            if axis is axes[0]:
                line.set_label(name)
    draw_legend(axes[0], fontsize="x-small", loc="lower left")
    for axis, value, name in (
        (axes[0], math.log(k), "log k"),
        (axes[1], math.log(36), "log 36"),
        (axes[2], k / 36, "k / 36"),
    ):
        _reference(axis, value, name)
    for axis in axes:  # after the references, which lie within the limits
        axis.set_ylim(bottom=0)
    axes[2].set_ylim(top=1)
    axes[-1].set_xlabel("step")
    axes[-1].xaxis.set_major_formatter("{x:,.0f}")
    return figure


def new_figure(panels: int = 1) -> tuple[Figure, plt.Axes]:
    """Return a figure with one axis, or an array of axes side by side."""
    sns.set_theme(style="ticks")
    width = 6.5 if panels == 1 else 4.4 * panels
    return plt.subplots(1, panels, figsize=(width, 4.2), layout="constrained")


def panel_grid(
    rows: int, columns: int, *, width: float = 4.4, height: float = 4.2, **shared
) -> tuple[Figure, np.ndarray]:
    """Return a figure and an array of its panels, row by row.

    Args:
        rows: of panels.
        columns: of panels.
        width: of a panel in inches.
        height: of a panel in inches.
        shared: matplotlib's ``sharex`` and ``sharey``.
    """
    sns.set_theme(style="ticks")
    size = (width * columns, height * rows)
    return plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **shared)


def colours(number: int) -> list:
    """Return colours from dark to light, without the lightest ones, which fade on white."""
    if number == 1:
        return ["black"]
    return sns.color_palette("viridis", number + math.ceil(number / 4))[:number]


def styles(number: int) -> list[tuple]:
    """Return a colour, a marker and a line style for each of so many series.

    Markers and line styles begin again where they are used up, at different numbers, so that the
    pairs differ for longer.
    """
    return [
        (colour, MARKERS[index % len(MARKERS)], DASHES[index % len(DASHES)])
        for index, colour in enumerate(colours(number))
    ]


def draw_legend(axis: plt.Axes, **options) -> None:
    """Draw a legend, unless nothing on the axis has a name."""
    if axis.get_legend_handles_labels()[0]:
        axis.legend(**options)


def legend_below(figure: Figure, columns: int) -> None:
    """Draw one legend for all panels below them; what several panels have stands there once."""
    entries: dict = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if entries:
        place = {"loc": "outside lower center", "ncols": columns}
        figure.legend(entries.values(), entries.keys(), fontsize="small", **place)


def plain_ticks(*axes: Axis) -> None:
    """Give logarithmic axes few ticks, with plain numbers; their limits must be final."""
    for axis in axes:
        if _blank(axis):
            continue
        axis.set_ticks(log_ticks(*axis.get_view_interval()))
        axis.set_major_formatter(lambda value, _: f"{value:,.10g}")
        axis.set_minor_formatter("")


def ticks_at_values(axis, values: pd.Series, rotation: float = 0) -> None:
    """Put the ticks of the horizontal axis at the different values, and nowhere else."""
    if _blank(axis.xaxis):
        return
    ticks = sorted(values.unique())
    axis.set_xticks(ticks, [f"{value:g}" for value in ticks], rotation=rotation)
    axis.xaxis.minorticks_off()


def _blank(axis: Axis) -> bool:
    """Return whether a logarithmic axis has no data above 0; if so, leave it without ticks."""
    name, panel = axis.axis_name, axis.axes
    panels = getattr(panel, f"get_shared_{name}_axes")().get_siblings(panel)
    least = min(getattr(one, f"{name}axis").get_minpos() for one in panels)
    if axis.get_scale() != "log" or math.isfinite(least):
        return False
    getattr(panel, f"set_{name}lim")(1, 10)  # any that can be drawn
    axis.set_ticks([])
    axis.minorticks_off()
    return True


def log_ticks(low: float, high: float) -> list[float]:
    """Return ticks between two numbers: the sparsest of `LOG_TICKS` that gives at least four.

    Between numbers so close that none does, ticks are equally far apart.

    Args:
        low: above 0.
        high: above ``low``.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in LOG_TICKS:
        ticks = [float(f"{digit}e{power}") for power in powers for digit in digits]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 4:
            return ticks
    even = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3).tick_values(low, high)
    return [tick for tick in even if low <= tick <= high]


def _is_series(column: str, prefix: str) -> bool:
    return column.startswith(prefix) if prefix.endswith("_") else column == prefix


def draw_waiting_times(
    axis: plt.Axes,
    runs: pd.DataFrame,
    x: str,
    y: str = "tau",
    *,
    status: str = "tau_status",
    colour="black",
    marker: str = "o",
    label: str = "run",
    censored_label: str = "no transition up to here",
) -> None:
    """Draw observed runs as filled marks and censored ones as hollow triangles: later than this."""
    observed = runs[runs[status] == "observed"].astype({y: float})
    if not observed.empty:
        axis.scatter(observed[x], observed[y], color=[colour], marker=marker, label=label, zorder=3)
    censored = runs[runs[status] == "censored"].astype({y: float})
    if not censored.empty:
        axis.scatter(
            censored[x],
            censored[y],
            facecolors="none",
            edgecolors=[colour],
            marker="^",
            label=f"{label}, {censored_label}",
            zorder=3,
        )


def draw_papers(
    axis: plt.Axes,
    runs: pd.DataFrame,
    x: str,
    y: str = "paper_tau",
    *,
    colour="0.5",
    label: str = "the paper's run",
) -> None:
    """Draw the paper's waiting times as hollow squares, where it gives any."""
    papers = runs.dropna(subset=y).drop_duplicates([x, y])
    if papers.empty:
        return
    hollow = {"marker": "s", "facecolors": "none", "edgecolors": [colour], "zorder": 2}
    axis.scatter(papers[x], papers[y], label=label, **hollow)


def draw_means(
    axis: plt.Axes,
    runs: pd.DataFrame,
    x: str,
    y: str = "tau",
    *,
    status: str = "tau_status",
    colour="0.5",
    dash: str = "-",
) -> None:
    """Join geometric means; a bar spans Student's 95% interval of three runs or more.

    Of two it would span a factor of 10 and more, and the two are seen themselves. The line is
    broken where a run is censored: it would pass below what that one waited.
    """
    known = runs[runs[status].isin(["observed", "censored"])].astype({y: float})
    times = np.log(known[y].where(known[status] == "observed")).groupby(known[x])
    whole = times.count() == times.size()
    mean, number = times.mean().where(whole), times.size()
    several = whole & (number > 2)
    half = times.std() / np.sqrt(number) * stats.t.ppf(0.975, np.maximum(number - 1, 1))
    # rounded, because an axis cannot span the error of a mean of equal times
    axis.plot(mean.index, np.exp(mean).round(6), color=colour, linestyle=dash)
    low, high = np.exp(mean - half)[several], np.exp(mean + half)[several]
    axis.vlines(mean.index[several], low, high, color=colour)


def _reference(axis: plt.Axes, value: float, name: str) -> None:
    axis.axhline(value, color="0.5", linewidth=0.8, linestyle=":")
    axis.annotate(
        name, (1.01, value), xycoords=("axes fraction", "data"), va="center", fontsize="small"
    )
