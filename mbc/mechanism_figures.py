"""Figures of what goes on inside a run; see `mbc.figures` for what they share."""

import numpy as np
import pandas as pd

from mbc.figures import Figure, legend_below, panel_grid, plt, styles

GROUP_CURVES = {
    "mean_accuracy": ("mean accuracy", "0.6", "-", None),
    "share_solved": ("groups solved", "black", "-", "o"),
    "independent_share_solved": ("same mean, items independent", "black", ":", None),
}
"""Columns drawn by `groups`: name, shade, line style, marker."""


FRESH_WALK = "random walk whose batches are drawn anew"
PERMUTED_WALK = "down to one whose gradients\ncancel over each epoch"
"""Legend entries of `displacement`; fresh and permuted of `mbc.trajectories.RandomWalk`."""


def groups(table: pd.DataFrame) -> Figure:
    """Draw the share of groups solved and the mean accuracy, one panel a k (Table 6).

    Beside it the share that would be solved if items were independent at the same mean accuracy.

    Args:
        table: columns run, k, fraction (step / tau), mean_accuracy, share_solved,
            independent_share_solved; a row for each checkpoint of each run.
    """
    figure, axes = _panels(table)
    for axis, (k, of_k) in zip(axes, table.groupby("k"), strict=True):
        for number, (_, run) in enumerate(of_k.groupby("run")):
            run = run.sort_values("fraction")
            for column, (name, shade, dash, marker) in GROUP_CURVES.items():
                label = name if number == 0 else None
                style = {"color": shade, "linestyle": dash, "marker": marker, "markersize": 3}
                axis.plot(run["fraction"], run[column], label=label, **style)
        axis.axhline(1 / k, color="0.6", linewidth=0.8, linestyle="--", label="chance, 1 / k")
        axis.set(xlabel="step / τ", ylim=(-0.02, 1.05))
        axis.set_title(f"k = {k}", fontsize="medium")
    axes[0].set_ylabel("share of groups solved,\nor of answers that are right")
    axes[-1].legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1))
    return figure


def displacement(table: pd.DataFrame) -> Figure:
    """Draw the cosine of consecutive displacements by component, one panel a k (Figure 3b).

    A grey line is the cosine of a random walk with fresh data (`mbc.trajectories.RandomWalk`), a
    band reaches from it to that with permuted epochs. The legend says so in plain words.

    Args:
        table: columns run, k, fraction (step / tau where the displacements meet), component,
            cosine, fresh, permuted; permuted may be missing values. A row for each component and
            each two displacements of each run.
    """
    figure, axes = _panels(table)
    components = list(table["component"].unique())
    for axis, (k, of_k) in zip(axes, table.groupby("k"), strict=True):
        for index, (component, (colour, marker, dash)) in enumerate(
            zip(components, styles(len(components)), strict=True)
        ):
            chosen = of_k[of_k["component"] == component].sort_values("fraction")
            style = {"color": colour, "linestyle": dash}
            for number, (_, run) in enumerate(chosen.groupby("run")):
                axis.plot(
                    run["fraction"],
                    run["cosine"],
                    marker=marker,
                    markersize=3,
                    linewidth=2 if index == 0 else 1,
                    label=component if number == 0 else None,
                    **style,
                )
        _random_walks(axis, of_k)
        axis.axvline(1, color="0.5", linewidth=0.8, linestyle=":")
        axis.set_xlabel("step / τ")
        axis.set_title(f"k = {k}", fontsize="medium")
    axes[0].set_ylabel("cosine of consecutive displacements")
    legend_below(figure, columns=3)
    return figure


def _panels(table: pd.DataFrame) -> tuple[Figure, np.ndarray]:
    """Return a figure with an axis for each k, all with one vertical scale."""
    figure, axes = panel_grid(1, table["k"].nunique(), sharey=True)
    return figure, axes[0]


def _random_walks(axis: plt.Axes, table: pd.DataFrame) -> None:
    """Draw the cosines of random walks of every run."""
    for number, (_, run) in enumerate(table.groupby("run")):
        walk = run.drop_duplicates("fraction").sort_values("fraction")
        label = FRESH_WALK if number == 0 else None
        axis.plot(walk["fraction"], walk["fresh"], color="0.5", linewidth=0.8, label=label)
        permuted = walk[walk["permuted"].notna()]
        axis.fill_between(
            permuted["fraction"],
            permuted["permuted"].astype(float),
            permuted["fresh"],
            color="0.85",
            zorder=0,
            label=PERMUTED_WALK if number == 0 and len(permuted) else None,
        )
