import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from mbc import figures, heads_figures

HEADS = [(layer, head) for layer in range(4) for head in range(4)]
RISES = pd.DataFrame(
    [
        {
            **{"run": f"{run}-42", "k": k, "phase": phase, "step": step},
            **{"layer": layer, "head": head, "verdict": "none" if step == 50 else "leader"},
            "rise": 0.01 if step == 50 else 1.7 - 0.11 * (4 * layer + head),
            "leading": step != 50 and (layer, head) == (0, 0),
        }
        for run, k in (("k10", 10), ("base", 20))
        for phase, step in (("end", 210), ("plateau", 50), ("transition", 100))
        for layer, head in HEADS
        if (run, phase) != ("base", "end")
    ]
)
ATTENTION = pd.DataFrame(
    [
        {
            **{"run": f"{run}-42", "k": k, "fraction": fraction, "layer": layer, "head": head},
            **{"attention": 0.2 + 0.03 * head * fraction + 0.05 * layer, "uniform": 0.18},
        }
        for run, k in (("k10", 10), ("base", 20))
        for fraction in (1.0, 0.5, 2.0)
        for layer, head in HEADS
    ]
)
ONE_RUN = ATTENTION[ATTENTION["k"] == 20]
DRAW = {
    "heads": lambda: heads_figures.heads(RISES, "zero"),
    "one_panel": lambda: heads_figures.heads(RISES[:16], "mean"),
    "attention": lambda: heads_figures.attention_to_z(ATTENTION),
    "attention_of_one_run": lambda: heads_figures.attention_to_z(ONE_RUN),
    "attention_of_one_layer": lambda: heads_figures.attention_to_z(ONE_RUN.query("layer == 0")),
}


@pytest.mark.parametrize("name", DRAW)
def test_figures_have_axes_with_names_and_equal_bytes(name, tmp_path):
    figure = DRAW[name]()
    drawn = [axis for axis in figure.axes if axis.axison]
    # panels of attention share their axes: the leftmost and the lowest ones bear the names
    assert drawn[0].get_ylabel()
    assert any(axis.get_xlabel() for axis in drawn)
    figures.save(figure, tmp_path / "one.png")
    figures.save(DRAW[name](), tmp_path / "two.png")
    one, two = ((tmp_path / f"{n}.png").read_bytes() for n in ("one", "two"))
    assert one == two
    assert len(one) > 5000


def test_rises_stand_at_their_heads_and_phases_in_order():
    *panels, bar = DRAW["heads"]().axes
    assert "nats" in bar.get_ylabel()
    assert "zero" in bar.get_ylabel()
    titles = [panel.get_title() for panel in panels]
    assert [title.split("\n")[1].split(",")[0] for title in titles[:3]] == [
        "plateau",
        "transition",
        "end",
    ]
    assert "none leads" in titles[0]
    assert not panels[5].axison  # base has no end
    numbers = {text.get_position(): text.get_text() for text in panels[1].texts}
    assert len(numbers) == 16
    assert numbers[2, 1] == "1.04"  # head 2 of layer 1


def test_a_rise_that_rounds_to_0_has_no_sign():
    panel, _ = heads_figures.heads(RISES[:16].assign(rise=[-0.004, -0.006] * 8), "mean").axes
    assert {text.get_text() for text in panel.texts} == {"0.00", "-0.01"}


def test_only_a_leader_is_framed():
    framed = [
        [patch for patch in panel.patches if isinstance(patch, Rectangle)]
        for panel in DRAW["heads"]().axes[:-1]
    ]
    assert [len(frames) for frames in framed] == [0, 1, 1, 0, 1, 0]
    x, y = framed[1][0].get_center()
    assert (round(x), round(y)) == (0, 0)


def test_attention_has_a_row_a_run_and_a_panel_a_layer():
    figure = DRAW["attention"]()
    assert len(figure.axes) == 2 * 4
    assert [axis.get_title() for axis in figure.axes[:4]] == [f"layer {i}" for i in range(4)]
    assert "base-42, k = 20" in figure.axes[4].get_ylabel()
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    assert list(lines["head 3"].get_xdata()) == [0.5, 1.0, 2.0]
    assert list(lines["head 3"].get_ydata()) == pytest.approx([0.245, 0.29, 0.38])
    assert figure.axes[0].get_ylim()[1] < 0.7  # the largest share is 0.53
    left, right = figure.axes[0].get_xlim()
    assert 0.3 < left < 0.5
    assert 2.0 < right < 2.2


def test_heads_of_a_layer_differ_in_line_mark_and_brightness():
    figure = DRAW["attention_of_one_layer"]()
    lines = [line for line in figure.axes[0].lines if "head" in line.get_label()]
    assert len({line.get_linestyle() for line in lines}) == 4
    assert len({line.get_marker() for line in lines}) == 4
    light = [
        sum(w * c for w, c in zip((0.3, 0.59, 0.11), to_rgb(line.get_color()))) for line in lines
    ]
    assert light == sorted(light)
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named[:4] == [f"head {i}" for i in range(4)]
