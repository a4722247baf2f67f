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
CASCADE = RUNS.assign(
    **dict.fromkeys(("onset", "onset_string", "loss_onset"), RUNS["tau"] // 2),
    **{
        f"{name}_status": ["observed", "observed", "observed", "censored"]
        for name in ("onset", "onset_string", "loss_onset")
    },
)
THRESHOLDS = pd.DataFrame(
    {"threshold": [0.3, 0.5], "exponent": [1.2, 1.1], "low": [1.1, np.nan], "high": [1.3, np.nan]}
)
DRAW = {
    "loss_curves": lambda: figures.loss_curves(HISTORY),
    "waiting_times": lambda: figures.waiting_times(RUNS, CURVE, "law"),
    "waiting_times_without_curve": lambda: figures.waiting_times(RUNS, CURVE[:0], "law"),
    "all_censored": lambda: figures.waiting_times(
        RUNS.assign(tau_status="censored"), CURVE[:0], "law"
    ),
    "fixed_size": lambda: figures.fixed_size(RUNS),
    "threshold_exponents": lambda: figures.threshold_exponents(THRESHOLDS),
    "no_thresholds": lambda: figures.threshold_exponents(THRESHOLDS[:0]),
    "cascade": lambda: experiment_figures.cascade(CASCADE),
    "anatomy": lambda: figures.anatomy(HISTORY, 5, {"onset": 20, "τ": 30}),
}


@pytest.mark.parametrize("name", DRAW)
def test_figures_have_axes_with_names_and_equal_bytes(name, tmp_path):
    figure = DRAW[name]()
    assert figure.axes[-1].get_xlabel()
    assert all(axis.get_ylabel() for axis in figure.axes)
    figures.save(figure, tmp_path / "one.png")
    figures.save(DRAW[name](), tmp_path / "two.png")
    one, two = ((tmp_path / f"{n}.png").read_bytes() for n in ("one", "two"))
    assert one == two
    assert len(one) > 5000


def test_censored_runs_are_drawn_as_such():
    labels = DRAW["waiting_times"]().axes[0].get_legend_handles_labels()[1]
    assert any("no transition up to here" in label for label in labels)
    labels = figures.waiting_times(RUNS[:3], CURVE, "law").axes[0].get_legend_handles_labels()[1]
    assert not any("no transition up to here" in label for label in labels)


@pytest.mark.parametrize("backend", ["TkAgg", "module://matplotlib_inline.backend_inline"])
def test_no_display_and_no_backend_from_outside_is_needed(backend):
    environment = {**os.environ, "MPLBACKEND": backend}
    environment.pop("DISPLAY", None)
    code = "import stages.figures, matplotlib; assert matplotlib.get_backend().lower() == 'agg'"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
