import pandas as pd
import pytest

from mbc import curvature_figures, figures

CURVATURE = pd.DataFrame(
    [
        {
            **{"run": run, "k": 10, "phase": phase, "sample": sample, "largest": 3.0},
            **{"largest_residual": 0.01, "smallest": -0.1, "smallest_residual": 0.01},
            **{"rounding": 1e-5, "negative": phase == "plateau"},
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
    assert all(axis.get_xlabel() and axis.get_ylabel() for axis in drawn)
    for number in ("one", "two"):
        figures.save(DRAW[name](), tmp_path / f"{number}.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_what_cannot_be_told_from_0_is_hollow():
    axis = curvature_figures.curvature(CURVATURE).axes[1]
    marks = [line for line in axis.lines if line.get_linestyle() == "None"]
    assert {line.get_markerfacecolor() == "none" for line in marks} == {True, False}
