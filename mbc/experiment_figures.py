"""Figures of the experiments beside the scaling law; see `mbc.figures` for what they share."""

import pandas as pd

from mbc.figures import (
    DASHES,
    Figure,
    colours,
    draw_legend,
    draw_means,
    draw_papers,
    draw_waiting_times,
    legend_below,
    new_figure,
    panel_grid,
    plain_ticks,
    styles,
    ticks_at_values,
)


def effect(runs: pd.DataFrame, x: str, name: str, *, logarithmic: bool = True) -> Figure:
    """Draw tau against something that changes gradient noise, in steps and in examples (Figure 2).

    Args:
        runs: columns ``x``, tau, tau_examples, tau_status, and paper_tau and paper_tau_examples:
            the paper's waiting time, which may be missing.
        x: the column on the horizontal axis.
        name: its name and unit.
        logarithmic: whether the horizontal axis is.
    """
    figure, axes = new_figure(panels=2)
    for axis, y, unit in zip(axes, ("tau", "tau_examples"), ("steps", "examples"), strict=True):
        draw_means(axis, runs, x, y)
        draw_waiting_times(axis, runs, x, y)
        draw_papers(axis, runs, x, f"paper_{y}")
        axis.set(yscale="log", xlabel=name, ylabel=f"waiting time τ ({unit})")
        if logarithmic:
            axis.set_xscale("log")
        ticks_at_values(axis, runs[x], rotation=30)
        plain_ticks(axis.yaxis)
    draw_legend(axes[0])
    return figure


CASCADE = {
    "onset": "z-gap of the first character",
    "onset_string": "z-gap of the whole answer",
    "loss_onset": "candidate loss below 0.9 log k",
    "loss_onset_character": "first character's loss below 0.9 log k",
    "tau": "waiting time τ",
}
"""Moments of the cascade, in the paper's order, and their names in the figure."""


def cascade(runs: pd.DataFrame) -> Figure:
    """Draw by k when the selector begins to matter and when the loss follows (Figure 3a).

    Args:
        runs: columns k and, for each of `CASCADE`, the moment and its status.
    """
    figure, axis = new_figure()
    figure.set_figheight(5.8)
    for (moment, name), (colour, marker, dash) in zip(
        CASCADE.items(), styles(len(CASCADE)), strict=True
    ):
        status = f"{moment}_status"
        draw_means(axis, runs, "k", moment, status=status, colour=colour, dash=dash)
        style = {"status": status, "colour": colour, "marker": marker, "label": name}
        style["censored_label"] = "not reached up to here"  # most of them are no transition
        draw_waiting_times(axis, runs, "k", moment, **style)
    axis.set(xscale="log", yscale="log", xlabel="ambiguity k", ylabel="step")
    ticks_at_values(axis, runs["k"])
    plain_ticks(axis.yaxis)
    legend_below(figure, columns=1)  # nowhere within would it hide nothing
    return figure


def survival(curves: pd.DataFrame) -> Figure:
    """Draw Kaplan-Meier curves, one panel a sweep: the share of runs still without transition.

    A mark stands where a curve falls, an upright stroke where a run ended without transition. In
    each sweep there must be one of them.

    Args:
        curves: columns sweep, value, step, survival, low, high, events, censored, n_runs.
    """
    sweeps = list(curves["sweep"].unique())
    figure, axes = new_figure(panels=max(2, len(sweeps)))
    for axis, sweep in zip(axes, sweeps, strict=False):
        of_sweep = curves[curves["sweep"] == sweep]
        start = of_sweep.loc[of_sweep["step"] > 0, "step"].min() / 2
        values = sorted(of_sweep["value"].unique())
        for index, (value, style) in enumerate(zip(values, styles(len(values)), strict=True)):
            curve = of_sweep[of_sweep["value"] == value]
            curve = curve.assign(step=curve["step"].clip(lower=start))  # a log axis has no step 0
            _survival_curve(axis, curve, f"{value:g}", index, style)
        ended = of_sweep[of_sweep["censored"] > 0]
        if not ended.empty:
            name = "run ended,\nno transition"
            style = {"marker": "|", "s": 200, "color": "black", "zorder": 4}
            axis.scatter(ended["step"], ended["survival"], label=name, **style)
        axis.set(
            xscale="log",
            xlabel="step",
            ylabel="share of runs without transition",
            ylim=(-0.04, 1.06),
        )
        axis.set_xlim(left=start)
        plain_ticks(axis.xaxis)
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.17), "ncols": 3}
        axis.legend(title=sweep.replace("_", " "), fontsize="small", **below)
    for axis in axes[len(sweeps) :]:
        axis.set_axis_off()
    return figure


def _survival_curve(axis, curve: pd.DataFrame, name: str, index: int, style: tuple) -> None:
    """Draw the curve of one value; later ones are thinner, so that those below them show."""
    colour, marker, dash = style
    axis.step(
        curve["step"],
        curve["survival"],
        where="post",
        label=name,
        color=colour,
        linestyle=dash,
        linewidth=max(3.5 - 0.6 * index, 1),
        marker=marker,
        markersize=7,
        markevery=[bool(events) for events in curve["events"]],
    )
    inside = (curve["survival"] > 0) & (curve["survival"] < 1)  # elsewhere it spans everything
    if inside.any():
        low, high = (curve[end].where(inside).to_numpy()[:-1] for end in ("low", "high"))
        axis.stairs(
            high, curve["step"].to_numpy(), baseline=low, fill=True, color=colour, alpha=0.1
        )


def directions(runs: pd.DataFrame) -> Figure:
    """Draw forward, backward and transferred waiting times by k, by both criteria (Table 2).

    Args:
        runs: columns k, kind (``backward``, ``forward``, ``backward after forward``), tau,
            tau_status, character_tau, character_tau_status, and paper_tau: the paper's waiting
            time, which may be missing.
    """
    figure, axes = new_figure(panels=2)
    titles = ("candidate loss below 0.5 log k", "loss per character below 0.5 log 36")
    for axis, moment, title in zip(axes, ("tau", "character_tau"), titles, strict=True):
        kinds = list(runs["kind"].unique())
        for kind, (colour, marker, dash) in zip(kinds, styles(len(kinds)), strict=True):
            of_kind = runs[runs["kind"] == kind]
            status = f"{moment}_status"
            draw_means(axis, of_kind, "k", moment, status=status, colour=colour, dash=dash)
            style = {"status": status, "colour": colour, "marker": marker, "label": kind}
            draw_waiting_times(axis, of_kind, "k", moment, **style)
            if moment == "tau":
                draw_papers(axis, of_kind, "k", colour=colour, label=f"{kind}, the paper's")
        axis.set(xscale="log", yscale="log", xlabel="ambiguity k", ylabel="waiting time (steps)")
        ticks_at_values(axis, runs["k"])
        plain_ticks(axis.yaxis)
        axis.set_title(title, fontsize="medium")
    legend_below(figure, columns=2)  # a kind may stand in one panel alone
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
    plain_ticks(axis.xaxis)
    draw_legend(axis, fontsize="small")
    return figure


GAPS = {"b_gap": ("B-gap", "black", "o"), "z_gap": ("z-gap", "0.55", None)}
"""Gaps drawn by `structured`: name, shade, marker."""


def structured(table: pd.DataFrame) -> Figure:
    """Draw what a network knows of B and of z, structured fibres beside distinct ones.

    The upper panels have the loss, the lower ones the gaps.

    Args:
        table: columns run, k, fibre, step, and ratio (loss of the first character / log k), b_gap,
            z_gap.
    """
    figure, axes = panel_grid(2, 2, height=3.4, sharex=True, sharey="row")
    # gaps of a tenth of a nat are to be seen beside ones of ten nats, and so are those around 0
    axes[1, 0].set_yscale("symlog", linthresh=0.1, linscale=0.5)
    values = sorted(table["k"].unique())
    for fibre, (upper, lower) in zip(("distinct", "structured"), axes.T, strict=True):
        of_fibre = table[(table["fibre"] == fibre) & (table["step"] > 0)]
        for index, (k, colour) in enumerate(zip(values, colours(len(values)), strict=True)):
            dash = DASHES[index % len(DASHES)]
            for number, (_, run) in enumerate(of_fibre[of_fibre["k"] == k].groupby("run")):
                label = f"k = {k}" if number == 0 else None
                upper.plot(run["step"], run["ratio"], color=colour, linestyle=dash, label=label)
                _gaps(lower, run, k, dash, named=number == 0)
        upper.axhline(1, color="0.5", linewidth=0.8, linestyle=":", label="log k")
        upper.set_title(f"{fibre} fibres, first character", fontsize="medium")
        lower.set(xscale="log", xlabel="step")
    axes[0, 0].set(ylabel="loss / log k")
    axes[0, 0].set_ylim(bottom=0)
    axes[1, 0].set_ylabel("gap (nats), log scale above 0.1")
    _ticks_of_gaps(axes[1, 0])
    plain_ticks(axes[1, 0].xaxis)
    for row in axes:
        draw_legend(row[1], fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1))
    return figure


def _gaps(axis, run: pd.DataFrame, k: int, dash: str, *, named: bool) -> None:
    for column, (name, shade, marker) in GAPS.items():
        label = f"{name}, k = {k}" if named else None
        style = {"color": shade, "linestyle": dash, "marker": marker, "markersize": 4}
        axis.plot(run["step"], run[column], label=label, markevery=0.12, **style)


def _ticks_of_gaps(axis) -> None:
    low, high = axis.get_ylim()
    ticks = [tick for tick in (-1, -0.3, -0.1, 0, 0.1, 0.3, 1, 3, 10, 30) if low <= tick <= high]
    axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.yaxis.minorticks_off()
