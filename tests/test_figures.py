import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from mbc import experiment_figures, figures

RUNS = pd.DataFrame(
    {
        "run": ["a-0", "b-0", "c-0", "d-0"],
        "k": [5, 10, 20, 36],
        "dataset_size": [500, 1000, 2000, 3600],
        "paper_tau": [50.0, np.nan, 250.0, np.nan],
        "paper_tau_examples": [500.0, np.nan, 2500.0, np.nan],
        "nominal_size": [1000.0, 1000.0, 2000.0, 2000.0],
        "tau": pd.array([60, 120, 300, 900], dtype="Int64"),
        "tau_status": ["observed", "observed", "observed", "censored"],
    }
)
CURVE = pd.DataFrame(
    {"dataset_size": [500.0, 2000.0], "tau": [60.0, 300.0], "low": [50.0, 200.0], "high": [70, 400]}
)
HISTORY = pd.DataFrame(
    {
        "run": "a-0",
        "k": 5,
        "step": [0, 10, 20, 30],
        **{
            name: [2.0, 1.6, 1.5, 0.2]
            for name in ("candidate_loss", "loss_character_1", "loss_character_2", "loss_eos")
        },
        **dict.fromkeys(("fibre_mass", "z_gap", "b_gap", "z_gap_string", "b_gap_string"), 0.5),
    }
)
CASCADE_MOMENTS = [moment for moment in experiment_figures.CASCADE if moment != "tau"]
CASCADE = RUNS.assign(
    **dict.fromkeys(CASCADE_MOMENTS, RUNS["tau"] // 2),
    **{f"{n}_status": ["observed", "observed", "observed", "censored"] for n in CASCADE_MOMENTS},
)
SURVIVAL = pd.DataFrame(
    [
        ("learning_rate", value, step, share, share / 2, share, events, censored, 2)
        for value, first, last in ((0.001, 40, 60), (0.005, 50, 900))
        for step, share, events, censored in (
            (0, 1.0, 0, 0),
            (first, 0.5, 1, 0),
            (last, 0.5 * (last > 100), int(last < 100), int(last > 100)),
        )
    ],
    columns=[
        *("sweep", "value", "step", "survival", "low", "high"),
        *("events", "censored", "n_runs"),
    ],
)
CONTROLS = pd.concat(
    [
        HISTORY.assign(run=f"{fibre}-{k}", k=k, fibre=fibre, network=network, ratio=0.9)
        for fibre, network in (("distinct", "transformer"), ("structured", "linear"))
        for k in (5, 10)
    ]
).assign(b_gap=9.0)
THRESHOLDS = pd.DataFrame(
    {"threshold": [0.3, 0.5], "exponent": [1.2, 1.1], "low": [1.1, np.nan], "high": [1.3, np.nan]}
)
DIVERGED = CASCADE.assign(
    **{name: "diverged" for name in CASCADE if name.endswith("_status")},
    **{"lr": [1e-4, 3e-4, 1e-3, 3e-3], "tau_examples": RUNS["tau"] * 128},
    **{"kind": [*("backward", "forward") * 2], "character_tau": RUNS["tau"]},
    character_tau_status="diverged",
    paper_tau=np.nan,
    paper_tau_examples=np.nan,
)
ONE_CRITERION = DIVERGED.assign(character_tau_status=RUNS["tau_status"])
DRAW = {
    "loss_curves": lambda: figures.loss_curves(HISTORY),
    "waiting_times": lambda: figures.waiting_times(RUNS, CURVE, "law", 0.95),
    "waiting_times_without_curve": lambda: figures.waiting_times(RUNS, CURVE[:0], "law", 0.95),
    "all_censored": lambda: figures.waiting_times(
        RUNS.assign(tau_status="censored"), CURVE[:0], "law", 0.95
    ),
    "fixed_size": lambda: figures.fixed_size(RUNS),
    "threshold_exponents": lambda: figures.threshold_exponents(THRESHOLDS, 0.95),
    "no_thresholds": lambda: figures.threshold_exponents(THRESHOLDS[:0], 0.95),
    "cascade": lambda: experiment_figures.cascade(CASCADE),
    "survival": lambda: experiment_figures.survival(SURVIVAL),
    "survival_of_one_run": lambda: experiment_figures.survival(SURVIVAL[:2].assign(n_runs=1)),
    "structured": lambda: experiment_figures.structured(CONTROLS),
    "linear": lambda: experiment_figures.linear(CONTROLS),
    "anatomy": lambda: figures.anatomy(HISTORY, 5, {"onset": 20, "τ": 30}),
    "effect": lambda: experiment_figures.effect(
        DIVERGED.assign(tau_status=RUNS["tau_status"]), "lr", "learning rate"
    ),
    "directions": lambda: experiment_figures.directions(ONE_CRITERION),
    "structured_without_distinct": lambda: experiment_figures.structured(
        CONTROLS[CONTROLS["fibre"] == "structured"]
    ),
}
EMPTY = {
    "all_diverged": lambda: figures.waiting_times(DIVERGED, CURVE[:0], "law", 0.95),
    "fixed_size": lambda: figures.fixed_size(DIVERGED),
    "cascade": lambda: experiment_figures.cascade(DIVERGED),
    "effect": lambda: experiment_figures.effect(DIVERGED, "lr", "learning rate"),
    "effect_from_0": lambda: experiment_figures.effect(
        DIVERGED.assign(noise=0.0), "noise", "label noise", logarithmic=False
    ),
    "directions": lambda: experiment_figures.directions(DIVERGED),
    "loss_curves": lambda: figures.loss_curves(HISTORY[:1]),
    "structured": lambda: experiment_figures.structured(CONTROLS[CONTROLS["step"] == 0]),
    "linear": lambda: experiment_figures.linear(CONTROLS[CONTROLS["step"] == 0]),
}
"""What is drawn of runs that diverged before any moment, or before the first step."""
DRAW |= {f"{name}_of_nothing": draw for name, draw in EMPTY.items()}
DRAW["anatomy_of_nothing"] = lambda: figures.anatomy(HISTORY[:1], 5, {})


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    figures.plt.close("all")


@pytest.mark.parametrize("name", DRAW)
def test_figures_have_axes_with_names_and_equal_bytes(name, tmp_path):
    figure = DRAW[name]()
    drawn = [axis for axis in figure.axes if axis.axison]
    assert drawn[-1].get_xlabel()
    # of panels with one scale one bears the name
    assert all(
        any(one.get_ylabel() for one in axis.get_shared_y_axes().get_siblings(axis))
        for axis in drawn
    )
    figures.save(figure, tmp_path / "one.png")
    figures.save(DRAW[name](), tmp_path / "two.png")
    one, two = ((tmp_path / f"{n}.png").read_bytes() for n in ("one", "two"))
    assert one == two
    assert len(one) > 5000


def test_censored_runs_are_drawn_as_such():
    labels = DRAW["waiting_times"]().axes[0].get_legend_handles_labels()[1]
    assert any("no transition up to here" in label for label in labels)
    axis = figures.waiting_times(RUNS[:3], CURVE, "law", 0.95).axes[0]
    labels = axis.get_legend_handles_labels()[1]
    assert not any("no transition up to here" in label for label in labels)


@pytest.mark.parametrize("name", EMPTY)
def test_logarithmic_axes_without_data_have_no_ticks(name):
    figure = EMPTY[name]()
    figure.canvas.draw()
    logarithmic = [
        axis
        for panel in figure.axes
        for axis in (panel.xaxis, panel.yaxis)
        if axis.get_scale() == "log"
    ]
    assert logarithmic
    assert not any(axis.get_ticklocs().size for axis in logarithmic)
    assert not any(axis.get_ticklocs(minor=True).size for axis in logarithmic)


def test_intervals_bear_their_confidence():
    labels = figures.waiting_times(RUNS, CURVE, "law", 0.9).axes[0].get_legend_handles_labels()[1]
    assert "90% band" in labels
    name = figures.threshold_exponents(THRESHOLDS, 0.995).axes[0].get_ylabel()
    assert name.endswith("99.5% bootstrap interval")


def test_every_dataset_size_is_drawn_in_a_style_of_its_own():
    sizes = RUNS["nominal_size"][0] * np.arange(1, 7)
    runs = pd.concat([RUNS.assign(nominal_size=size, paper_tau=np.nan) for size in sizes])
    figure = figures.fixed_size(runs)
    (axis,) = figure.axes
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[::2] == [f"D = {size:,.0f}" for size in sizes]
    marks = axis.get_legend_handles_labels()[0][::2]
    shapes = [
        (mark.get_paths()[0].vertices.tolist(), line.get_linestyle())
        for mark, line in zip(marks, axis.lines)
    ]
    assert not any(shape in shapes[:i] for i, shape in enumerate(shapes))


def test_a_moment_of_the_cascade_is_not_called_a_transition():
    labels = DRAW["cascade"]().axes[0].get_legend_handles_labels()[1]
    assert "z-gap of the whole answer, not reached up to here" in labels
    assert not any("no transition" in label for label in labels)


def test_the_legend_of_directions_lies_within_the_figure():
    kinds = ("backward", "forward", "backward after forward")
    figure = experiment_figures.directions(
        pd.concat([ONE_CRITERION.assign(kind=kind) for kind in kinds])
    )
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert len(figure.legends[0].get_texts()) == 6
    assert box.x0 > 0
    assert box.x1 < figure.bbox.x1


def test_what_stands_in_one_panel_alone_is_in_the_legend():
    figure = DRAW["directions"]()
    assert not figure.axes[0].get_legend_handles_labels()[1]
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["backward", "forward", "forward, no transition up to here"]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (18, 700, [20, 50, 100, 200, 500]),
        (40, 65_000, [100, 300, 1000, 3000, 10_000, 30_000]),
        (5, 2e6, [10, 100, 1000, 10_000, 100_000, 1e6]),
        (600, 1800, [750, 1000, 1250, 1500, 1750]),
        (110, 145, [110, 120, 130, 140]),
        (1e-4, 1e-3, [1e-4, 2e-4, 5e-4, 1e-3]),
    ],
)
def test_logarithmic_axes_have_few_round_ticks(low, high, ticks):
    assert figures.log_ticks(low, high) == pytest.approx(ticks)


@pytest.mark.parametrize("scale", [1, 60])
@pytest.mark.parametrize("name", ["loss_curves", "waiting_times", "fixed_size"])
def test_labels_are_plain_numbers_that_do_not_overlap(name, scale):
    times = RUNS.assign(dataset_size=RUNS["dataset_size"] * scale, tau=RUNS["tau"] * scale)
    figure = {
        "loss_curves": lambda: figures.loss_curves(HISTORY.assign(step=HISTORY["step"] * scale)),
        "waiting_times": lambda: figures.waiting_times(times, CURVE[:0], "law", 0.95),
        "fixed_size": lambda: figures.fixed_size(times),
    }[name]()
    figure.canvas.draw()
    (axis,) = figure.axes
    for one in (axis.xaxis, axis.yaxis):
        labels = [label for label in one.get_ticklabels(which="both") if label.get_text()]
        assert len(labels) >= 3
        assert all(float(label.get_text().replace(",", "")) >= 0 for label in labels)
        boxes = [label.get_window_extent() for label in labels]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_moments_in_the_anatomy_are_told_apart_by_its_legend():
    moments = {"onset": 4449, "loss onset": 3764, "τ": 4848}  # the last two nearly coincide
    figure = figures.anatomy(HISTORY.assign(step=[0, 100, 5000, 10_000]), 20, moments)
    legend = figure.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        *("candidate loss", "loss onset", "onset", "τ")
    ]
    styles = [line.get_linestyle() for line in legend.get_lines()[1:]]
    assert len({*styles}) == 3


PAPER_BESIDE_OURS = {
    "waiting_times": (
        lambda runs: figures.waiting_times(runs, CURVE, "law", 0.95),
        {"the paper's run": [50, 250]},
    ),
    "fixed_size": (
        figures.fixed_size,
        {"the paper's, D = 1,000": [50], "the paper's, D = 2,000": [250]},
    ),
    "effect": (
        lambda runs: experiment_figures.effect(runs, "k", "k"),
        {"the paper's run": [50, 250, 500, 2500]},
    ),
}


@pytest.mark.parametrize("name", PAPER_BESIDE_OURS)
def test_the_papers_waiting_times_stand_beside_ours_where_there_are_any(name):
    draw, expected = PAPER_BESIDE_OURS[name]
    runs = RUNS.assign(tau_examples=RUNS["tau"] * 10)
    assert _papers(draw(runs)) == expected
    assert not _papers(draw(runs.assign(paper_tau=np.nan, paper_tau_examples=np.nan)))


def _papers(figure):
    """Return what is drawn of the paper's, over all panels, by its name in the legend."""
    drawn = {}
    for axis in figure.axes:
        for marks, label in zip(*axis.get_legend_handles_labels(), strict=True):
            if label.startswith("the paper's"):
                drawn.setdefault(label, []).extend(marks.get_offsets()[:, 1].tolist())
    return drawn


def test_gaps_in_the_anatomy_are_named_as_in_other_figures():
    *_, first, whole = DRAW["anatomy"]().axes
    for axis, end in ((first, "first character"), (whole, "whole answer")):
        named = {text.get_text() for text in axis.get_legend().get_texts()}
        assert named == {f"z-gap of the {end}", f"B-gap of the {end}"}


def test_survival_marks_transitions_and_runs_that_ended_without():
    axis, empty = DRAW["survival"]().axes
    assert not empty.axison
    fast, slow = axis.lines
    assert fast.get_linestyle() != slow.get_linestyle()
    assert fast.get_markevery() == [False, True, True]
    assert slow.get_markevery() == [False, True, False]
    assert axis.collections[-1].get_offsets().tolist() == [[900, 0.5]]
    assert [text.get_text() for text in axis.get_legend().get_texts()] == [
        "0.001",
        "0.005",
        "run ended,\nno transition",
    ]
    (axis, _) = DRAW["survival_of_one_run"]().axes
    assert not any("ended" in text.get_text() for text in axis.get_legend().get_texts())


def test_structured_has_ratios_above_and_gaps_below_unclipped():
    upper, _, lower, right = DRAW["structured"]().axes
    assert "nats" not in upper.get_ylabel()
    assert "nats" in lower.get_ylabel()
    assert {line.get_ydata()[0] for line in upper.lines} == {0.9, 1}  # with the line at log k
    assert {line.get_ydata()[0] for line in lower.lines} == {9, 0.5}
    assert lower.get_ylim()[1] > 9
    assert lower.get_ylim() == right.get_ylim()


@pytest.mark.parametrize("backend", ["TkAgg", "module://matplotlib_inline.backend_inline"])
def test_no_display_and_no_backend_from_outside_is_needed(backend):
    environment = {**os.environ, "MPLBACKEND": backend}
    environment.pop("DISPLAY", None)
    code = "import stages.figures, matplotlib; assert matplotlib.get_backend().lower() == 'agg'"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
