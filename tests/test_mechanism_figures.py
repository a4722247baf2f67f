import numpy as np
import pandas as pd
import pytest

from mbc import figures, mechanism_figures

GROUPS = pd.DataFrame(
    [
        (run, k, fraction, share**0.5, share, share**2)
        for run, k in (("a-0", 10), ("a-1", 10), ("b-0", 20))
        for fraction, share in ((0.0, 0.0), (1.0, 0.3), (1.5, 0.9))
    ],
    columns=[
        *("run", "k", "fraction"),
        *("mean_accuracy", "share_solved", "independent_share_solved"),
    ],
)
DISPLACEMENT = pd.DataFrame(
    [
        (run, k, fraction, component, cosine, 0.3, -0.1)
        for run, k in (("a-0", 10), ("a-1", 10), ("b-0", 20))
        for component in ("whole", "attention", "mlp")
        for fraction, cosine in ((0.5, 0.04), (1.0, 0.8), (1.5, 0.5))
    ],
    columns=["run", "k", "fraction", "component", "cosine", "fresh", "permuted"],
)
DRAW = {
    "groups": lambda: mechanism_figures.groups(GROUPS),
    "groups_of_one_k": lambda: mechanism_figures.groups(GROUPS[GROUPS["k"] == 10]),
    "displacement": lambda: mechanism_figures.displacement(DISPLACEMENT),
    "displacement_of_one_k": lambda: mechanism_figures.displacement(
        DISPLACEMENT[DISPLACEMENT["k"] == 20]
    ),
    "displacement_without_permuted": lambda: mechanism_figures.displacement(
        DISPLACEMENT.assign(permuted=np.nan)
    ),
}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    figures.plt.close("all")


@pytest.mark.parametrize("name", DRAW)
def test_figures_have_axes_with_names_and_equal_bytes(name, tmp_path):
    figure = DRAW[name]()
    assert all(axis.get_xlabel() for axis in figure.axes)
    assert figure.axes[0].get_ylabel()  # the others have the same scale
    assert len({axis.get_ylim() for axis in figure.axes}) == 1
    figures.save(figure, tmp_path / "one.png")
    figures.save(DRAW[name](), tmp_path / "two.png")
    one, two = ((tmp_path / f"{n}.png").read_bytes() for n in ("one", "two"))
    assert one == two
    assert len(one) > 5000


@pytest.mark.parametrize(("name", "marks"), [("groups", 0), ("displacement", 1)])
def test_one_panel_a_k_with_every_run_in_it(name, marks):
    first, second = DRAW[name]().axes
    assert [axis.get_title() for axis in (first, second)] == ["k = 10", "k = 20"]
    # three lines a run, its random walk, and one line for the panel: chance, or tau
    assert len(first.lines) == 2 * (3 + marks) + 1
    assert len(second.lines) == 3 + marks + 1
    assert len(DRAW[f"{name}_of_one_k"]().axes) == 1


def test_shares_of_groups_are_named_in_words():
    name = DRAW["groups"]().axes[0].get_ylabel().replace("\n", " ")
    assert name == "share of groups solved, or of answers that are right"


def test_the_nulls_are_drawn_and_named():
    labels = DRAW["groups"]().axes[1].get_legend_handles_labels()[1]
    assert "same mean, items independent" in labels
    axis = DRAW["displacement"]().axes[0]
    name = mechanism_figures.FRESH_WALK
    assert mechanism_figures.PERMUTED_WALK in axis.get_legend_handles_labels()[1]
    assert name in axis.get_legend_handles_labels()[1]
    walk = next(line for line in axis.lines if line.get_label() == name)
    assert walk.get_ydata().tolist() == [0.3, 0.3, 0.3]
    assert len(axis.collections) == 2  # a band for each run
    one_batch = DISPLACEMENT["permuted"].where(DISPLACEMENT["k"] == 20)
    figure = mechanism_figures.displacement(DISPLACEMENT.assign(permuted=one_batch))
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named.count(name) == named.count(mechanism_figures.PERMUTED_WALK) == 1
    labels = DRAW["displacement_without_permuted"]().axes[0].get_legend_handles_labels()[1]
    assert name in labels
    assert mechanism_figures.PERMUTED_WALK not in labels
