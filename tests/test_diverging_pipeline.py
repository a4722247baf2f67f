"""The pipeline where what others build on diverges: the followed base, a transfer's forward run."""

import pandas as pd
import pytest

from stages.files import read_json
from tests.test_pipeline import call, make_workspace

CONDITIONS = {
    "base": None,
    "forward_base": {"direction": "forward", "label_noise": 0.0},
    "k03": {"k": 3, "lr": 1e-3},
}
LOST = ["base-0", "forward_base-0", "transfer_base-0"]


@pytest.fixture(scope="module")
def diverging(tmp_path_factory):
    """A small pipeline with an absurd learning rate, up to the tables of moments and mechanism."""
    folder = tmp_path_factory.mktemp("diverging") / "workspace"
    make_workspace(folder, lr=1e6, conditions=CONDITIONS)
    call(folder, "dvc", "repro", "transitions", "mechanism")
    return folder


def test_all_runs_are_in_the_table_of_runs(diverging):
    table = pd.read_csv(diverging / "metrics" / "runs.csv").set_index("run")
    assert table.index[table["run_status"] == "diverged"].tolist() == LOST
    assert (table.loc[LOST, "tau_status"] == "diverged").all()
    assert table.loc["k03-0", "tau_status"] in ("observed", "censored")
    history = diverging / "data" / "runs" / "transfer_base-0" / "history.csv"
    assert not history.read_text().strip()
    assert table.loc["transfer_base-0", "tau"] == 0


def test_analyses_say_so_and_add_no_row(diverging):
    for analysis in ("groups", "heads", "curvature", "displacement", "gradient_noise"):
        written = read_json(diverging / "metrics" / analysis / "base-0.json")
        assert set(written) == {"k", "tau", "statement"}
        assert written["statement"].startswith("The run diverged at step ")
    tables = list((diverging / "metrics" / "mechanism").glob("*.csv"))
    assert len(tables) == 9
    assert all(pd.read_csv(table).empty for table in tables)


def test_it_ends_with_a_report(diverging):
    call(diverging, "dvc", "repro")
    report = (diverging / "report.md").read_text()
    assert "Not looked into, because they diverged: base-0." in report
    ended = pd.read_csv(diverging / "metrics" / "runs.csv").set_index("run")["diverged_at"]
    assert f"diverged at {ended['base-0']:.0f}" in report
    assert "transfer_base-0" in report
