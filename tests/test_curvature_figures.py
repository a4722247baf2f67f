import pandas as pd
import pytest

from mbc import curvature_figures, figures

CURVATURE = pd.DataFrame(
    [
        {
            **{"run": run, "k": 10, "phase": phase, "sample": sample, "largest": 3.0},
            **{"largest_residual": 0.01, "smallest": -0.1, "smallest_residual": 0.01},
            **{"rounding": 1e-5, "negative": phase == "plateau"},
            **{"largest_converged": True, "smallest_converged": True},
        }
        for run in ("k10-1", "base-1")
        for phase in ("plateau", "transition")
        for sample in ("first", "second")
    ]
)
NOISE = pd.DataFrame(
    [
        {
            **{"run": run, "batch_size": size, "direction": direction, "eigenvalue": 1.0},
            **{"share_over_isotropic": 40.0, "low": 30.0, "high": 60.0},
        }
        for run in ("k10-1", "base-1")
        for size in (32, 128)
        for direction in ("smallest", "largest 2", "largest 1")
    ]
)
DRAW = {
    "curvature": lambda: curvature_figures.curvature(CURVATURE),
    "one_run": lambda: curvature_figures.curvature(CURVATURE[:2]),
    "gradient_noise": lambda: curvature_figures.gradient_noise(NOISE),
    "one_direction": lambda: curvature_figures.gradient_noise(NOISE[:1]),
}


@pytest.mark.parametrize("name", DRAW)
def test_figures_have_axes_with_names_and_equal_bytes(name, tmp_path):
    figure = DRAW[name]()
    drawn = [axis for axis in figure.axes if axis.axison]
    # panels of noise share their axes: the leftmost and the lowest ones bear the names
    assert drawn[0].get_ylabel()
    assert drawn[-1].get_xlabel()
    for number in ("one", "two"):
        figures.save(DRAW[name](), tmp_path / f"{number}.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_what_does_not_count_as_negative_is_hollow_and_the_legend_says_why():
    figure = curvature_figures.curvature(CURVATURE)
    marks = [line for line in figure.axes[1].lines if line.get_linestyle() == "None"]
    assert {line.get_markerfacecolor() == "none" for line in marks} == {True, False}
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["k10-1", "base-1", curvature_figures.HOLLOW, "cross: not converged"]
    assert "does not curve downward" in curvature_figures.HOLLOW


@pytest.mark.parametrize("end", ["largest", "smallest"])
def test_what_did_not_converge_is_a_cross_at_its_place(end):
    value = CURVATURE.index == 2  # base, so a second run has one, too
    table = CURVATURE.assign(**{f"{end}_converged": ~value, end: CURVATURE[end] * (1 + value)})
    axes = curvature_figures.curvature(table).axes
    for axis, drawn in zip(axes, ("largest", "smallest")):
        crosses = [
            line for line in axis.lines if line.get_marker() == "X" and len(line.get_xdata())
        ]
        assert [line.get_ydata().tolist() for line in crosses] == (
            [[2 * CURVATURE[end][0]]] if drawn == end else []
        )
        marks = [line for line in axis.lines if line.get_linestyle() == "None"]
        assert sum(len(line.get_ydata()) for line in marks) == len(table)
    assert figures.MARKERS.count(curvature_figures.NOT_CONVERGED) == 0


def test_legends_lie_within_their_figures():
    noise = pd.concat([NOISE.assign(run=f"lr_3e_4-{seed}") for seed in range(6)])
    lacks = noise["run"].isin(["lr_3e_4-0", "lr_3e_4-2", "lr_3e_4-5"]) & (
        noise["batch_size"] == 128
    )
    ends = pd.concat([CURVATURE.assign(run=f"k10-{seed}") for seed in range(6)])
    for figure in (
        curvature_figures.gradient_noise(noise[~lacks]),
        curvature_figures.curvature(ends),
        curvature_figures.curvature(CURVATURE),
    ):
        figure.canvas.draw()
        box = figure.legends[0].get_window_extent()
        assert box.x0 > 0
        assert box.x1 < figure.bbox.x1


def test_a_run_says_which_batch_sizes_of_the_others_it_lacks():
    lacks = (NOISE["run"] == "k10-1") & (NOISE["batch_size"] == 128)
    figure = curvature_figures.gradient_noise(NOISE[~lacks])
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "k10-1, not 128:\nover half of its examples" in named
    assert "base-1" in named


def test_noise_stands_in_two_rows_from_the_largest_eigenvalue_on():
    third = NOISE[:1].assign(direction="largest 3")
    figure = curvature_figures.gradient_noise(pd.concat([NOISE, third]))
    assert [axis.get_title() for axis in figure.axes] == [
        *("largest eigenvalue", "second largest"),
        *("third largest", "most negative"),
    ]
    assert figure.axes[0].get_gridspec().get_geometry() == (2, 2)
    assert len({axis.get_ylim() for axis in figure.axes}) == 1
    *_, last = DRAW["gradient_noise"]().axes
    assert not last.axison  # three directions leave a panel empty
