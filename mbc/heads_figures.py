"""Figures of attention heads; see `mbc.figures` for what all figures share."""

import pandas as pd

from mbc.checkpoints import PHASES

# matplotlib and seaborn by way of mbc.figures, which chooses the backend before they are imported
from mbc.figures import Figure, legend_below, panel_grid, plt, sns, styles


def heads(table: pd.DataFrame, ablation: str) -> Figure:
    """Draw what ablating each head does to the candidate loss, by layer and head (appendix I).

    One row of panels for each run, one column for each phase; the darker, the larger the rise, on
    one scale for all. Rises below 0 are as white as 0; their numbers say so. A leading head is
    framed; the title says where there is none.

    Args:
        table: columns run, k, phase (``plateau``, ``transition``, ``end``), step, layer, head,
            rise (nats), and verdict (``leader``, ``tie``, ``none``), leading (whether this head is
            the leader); one row for each head.
        ablation: what heads were replaced by, ``zero`` or ``mean``.
    """
    sns.set_theme(style="ticks")
    runs = list(table["run"].unique())
    phases = [phase for phase in PHASES if phase in set(table["phase"])]
    figure, axes = plt.subplots(
        len(runs),
        len(phases),
        figsize=(1.2 + 3.2 * len(phases), 3.1 * len(runs)),
        layout="constrained",
        squeeze=False,
    )
    largest = max(table["rise"].max(), 0.01)
    image = None
    for row, run in zip(axes, runs, strict=True):
        for axis, phase in zip(row, phases, strict=True):
            panel = table[(table["run"] == run) & (table["phase"] == phase)]
            if panel.empty:  # the run ended before this phase
                axis.set_axis_off()
                continue
            image = _rises(axis, panel, largest)
            where = {"leader": "leader framed", "tie": "several tie", "none": "none leads"}
            k, step, verdict = (panel[name].iloc[0] for name in ("k", "step", "verdict"))
            title = f"{run}, k = {k}\n{phase}, step {step}: {where[verdict]}"
            axis.set_title(title, fontsize="small")
    name = f"rise of candidate loss (nats),\n{ablation} ablation"
    figure.colorbar(image, ax=axes, label=name)
    return figure


def _rises(axis: plt.Axes, panel: pd.DataFrame, largest: float):
    rises = panel.pivot_table(index="layer", columns="head", values="rise")
    image = axis.imshow(
        rises, cmap="Greys", vmin=0, vmax=largest, origin="lower", aspect="auto", alpha=0.9
    )
    for _, row in panel.iterrows():
        colour = "white" if row["rise"] > 0.55 * largest else "black"
        place = (row["head"], row["layer"])
        axis.text(*place, f"{row['rise']:z.2f}", ha="center", va="center", color=colour, size=9)
        if row["leading"]:
            corner = (row["head"] - 0.46, row["layer"] - 0.44)
            axis.add_patch(
                plt.Rectangle(corner, 0.92, 0.88, fill=False, edgecolor=colour, linewidth=2)
            )
    axis.set(xlabel="head", ylabel="layer", xticks=rises.columns, yticks=rises.index)
    return image


def attention_to_z(table: pd.DataFrame) -> Figure:
    """Draw how much each head looks at the selector while a run passes its transition.

    One row of panels for each run, one column for each layer. A dotted line marks a head that looks
    at everything alike, an upright one the waiting time.

    Args:
        table: columns run, k, fraction (step / tau), layer, head, attention (share of the
            attention that goes to the two characters of z), uniform (that of a head that looks at
            everything alike); one row for each head and checkpoint.
    """
    runs = list(table["run"].unique())
    layers = sorted(table["layer"].unique())
    size = {"width": 2.5, "height": 2.6, "sharex": True, "sharey": True}
    figure, axes = panel_grid(len(runs), len(layers), **size)
    for row, run in zip(axes, runs, strict=True):
        of_run = table[table["run"] == run].sort_values("fraction")
        for axis, layer in zip(row, layers, strict=True):
            _attention_of_layer(axis, of_run[of_run["layer"] == layer])
        row[0].set_ylabel(f"{run}, k = {of_run['k'].iloc[0]}\nshare of attention to z")
    for axis, layer in zip(axes[0], layers, strict=True):
        axis.set_title(f"layer {layer}", fontsize="medium")
    for axis in axes[-1]:
        axis.set_xlabel("step / τ")
    axes[0, 0].set_ylim(0, 1.1 * table["attention"].max())
    legend_below(figure, columns=6)
    return figure


def _attention_of_layer(axis: plt.Axes, of_layer: pd.DataFrame) -> None:
    heads = sorted(of_layer["head"].unique())
    for head, (colour, marker, dash) in zip(heads, styles(len(heads)), strict=True):
        line = of_layer[of_layer["head"] == head]
        axis.plot(
            line["fraction"],
            line["attention"],
            color=colour,
            linestyle=dash,
            marker=marker,
            markersize=4,
            label=f"head {head}",
        )
    uniform = of_layer["uniform"].iloc[0]
    thin = {"color": "0.5", "linewidth": 0.8}
    axis.axhline(uniform, linestyle=":", label="looks at everything alike", **thin)
    axis.axvline(1, linestyle="-", label="waiting time", **thin)
