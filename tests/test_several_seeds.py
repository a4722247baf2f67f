"""The judging of several seeds, on the table of runs in the record with a second seed made up."""

import pandas as pd
import pytest
from scipy.stats import gmean

from mbc.claims import CUT_SHORT, VERDICTS
from mbc.conditions import parse
from mbc.judgement import judge_all
from mbc.runs import all_sweeps, read_run_table
from mbc.settings import Sweeps
from stages.files import read_json, read_yaml
from stages.tables import read_tables
from tests.conftest import ROOT

PARAMS = read_yaml(ROOT / "params.yaml")


@pytest.fixture(scope="module")
def table():
    runs = read_run_table(ROOT / "metrics" / "runs.csv")
    first = runs[runs["seed"] == runs["seed"].iloc[0]]
    second = first.assign(
        run=first["condition"] + "-1000",
        seed=1000,
        **{name: (first[name] * 1.1).round().astype("Int64") for name in ("tau", "tau_after")},
    )
    return pd.concat([first, second], ignore_index=True)


def judged(table):
    """Return the claims by name, at the paper's own size."""
    sweeps = all_sweeps(table, parse(Sweeps, PARAMS["sweeps"], "sweeps"), PARAMS["scale"])
    claims = judge_all(
        read_yaml(ROOT / "paper.yaml"),
        table,
        sweeps,
        1.0,
        read_json(ROOT / "metrics" / "scaling.json"),
        read_json(ROOT / "metrics" / "effects.json"),
        read_tables(ROOT / "metrics" / "mechanism"),
    )
    return {claim.name: claim for claim in claims}


def test_both_seeds_are_counted(table):
    claims = judged(table)
    tau = table.loc[table["run"].str.startswith("base-"), "tau"]
    assert claims["waiting_time"].ours.value == pytest.approx(gmean(tau.astype(float)))
    assert claims["waiting_time"].ours.n_runs == 2
    assert claims["batch_size_examples"].ours.n_runs == 4


@pytest.mark.parametrize("lost", ["base", "noise_020", "batch_032", "lr_2e_3", "k36"])
def test_one_censored_seed_bounds_what_it_is_part_of(table, lost):
    runs = table.copy()
    runs.loc[runs["run"] == f"{lost}-1000", ["tau_status", "tau"]] = ["censored", 50_000]
    claims = judged(runs)
    assert all(claim.verdict in VERDICTS for claim in claims.values())
    ratio = {
        "noise_020": "label_noise",
        "batch_032": "batch_size_examples",
        "lr_2e_3": "learning_rate_ratio",
        "base": "label_noise",
    }
    if lost in ratio:
        end = "at most" if lost == "base" else "at least"
        assert claims[ratio[lost]].ours.bound == end
        assert "had no transition by step" in claims[ratio[lost]].ours.note
    assert (claims["waiting_time"].verdict == CUT_SHORT) == (lost == "base")
