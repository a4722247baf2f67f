import numpy as np
import pandas as pd
import pytest

from mbc.conditions import BASE_KEYS, Condition
from mbc.diagnostics import Diagnostics
from mbc.runs import (
    RANDOM_WEIGHTS,
    PlannedRun,
    planned_runs,
    read_run_table,
    run_row,
    run_table,
    sweep_runs,
    transition_first,
)
from mbc.settings import Sweep
from mbc.transitions import Moment, Transition

OUTCOME = {"status": "transition_passed", "last_step": 1000}

TAU = Moment(500, True, 450, 64_000)


@pytest.fixture
def row(params):
    def make(name, seed=0, tau=TAU, outcome=OUTCOME, start_from=RANDOM_WEIGHTS, **changes):
        condition = Condition(**{**{key: params[key] for key in BASE_KEYS}, **changes})
        run = PlannedRun(name, seed, start_from, "train")
        return run_row(run, condition, outcome, Transition(tau=tau, width=100), Diagnostics())

    return make


def test_planned_runs_are_conditions_and_transfers_with_every_seed():
    runs = planned_runs(["base", "forward_base"], ["base"], [1, 2])
    assert [run.name for run in runs if run.seed == 1] == [
        "base-1",
        "forward_base-1",
        "transfer_base-1",
    ]
    assert len(runs) == 6
    assert runs[2].stage == "transfer@base-1"
    assert runs[2].start_from == "forward_base"


def test_statuses(row):
    observed = row("base")
    assert (observed["tau"], observed["tau_status"]) == (500, "observed")
    assert (observed["tau_after"], observed["tau_examples"]) == (450, 64_000)
    censored = row("base", tau=Moment(1000, False, 1000, 128_000))
    assert (censored["tau"], censored["tau_status"]) == (1000, "censored")
    diverged = {"status": "diverged", "last_step": 70, "diverged_at": 61}
    lost = row("base", tau=Moment(50, False, 50, 6400), outcome=diverged)
    assert lost["tau_status"] == "diverged"
    assert lost["diverged_at"] == 61
    early = row("base", tau=Moment(50, True, 40, 6400), outcome=diverged)
    assert early["tau_status"] == "observed"
    unambiguous = row("base", tau=None, k=1)
    assert (unambiguous["tau"], unambiguous["tau_status"]) == (None, "undefined")


def test_a_table_survives_its_file(row, tmp_path):
    table = run_table([row("base"), row("k01", tau=None, k=1), row("k03", seed=7, k=3)])
    table.to_csv(tmp_path / "runs.csv", index=False)
    back = read_run_table(tmp_path / "runs.csv")
    assert back["run"].tolist() == ["base-0", "k01-0", "k03-7"]
    assert back["tau"].isna().tolist() == [False, True, False]
    assert back["tau"].dtype == "Int64"
    assert np.allclose(back["log_k"], table["log_k"])


def test_sweeps_are_queries(row):
    rows = [
        row("base"),
        row("k03", k=3),
        row("k03_fast", k=3, lr=0.01),
        row("fast", lr=0.01),
        row("d10k_k05", k=5, n_b=2000),
        row("d10k_k36", k=36, n_b=278),
        row("odd", k=5, n_b=1999),
        row("transfer_k03", k=3, start_from="forward_k03"),
    ]
    table = run_table(rows)
    by_size = sweep_runs(table, Sweep(vary=["k"]), scale=1.0)
    assert by_size["condition"].tolist() == ["base", "k03"]
    rates = sweep_runs(table, Sweep(vary=["lr"]), scale=1.0)
    assert rates["condition"].tolist() == ["base", "fast"]
    fixed = sweep_runs(table, Sweep(vary=["k", "n_b"], dataset_sizes=[10_000, 20_000]), 1.0)
    sizes = fixed.groupby("nominal_size")["condition"].apply(list).to_dict()
    assert sizes == {10_000: ["d10k_k05", "d10k_k36"], 20_000: ["base"]}


def test_equal_conditions_count_once_in_a_sweep(row):
    rows = [row("a_twin"), row("base"), row("base", seed=1), row("k03", k=3), row("twin", k=3)]
    table = run_table(rows)
    found = sweep_runs(table, Sweep(vary=["k"]), scale=1.0)
    assert found["run"].tolist() == ["base-0", "base-1", "k03-0"]


def test_a_run_with_a_transition_stands_for_its_condition(row):
    table = run_table([row("base", seed=seed) for seed in (3, 1, 2)])
    assert transition_first(table)["seed"].tolist() == [1, 2, 3]
    table.loc[table["seed"] == 1, "tau_status"] = "censored"
    assert transition_first(table)["seed"].tolist() == [2, 3, 1]


def test_a_longer_step_budget_makes_no_difference(row):
    rows = [row("base"), row("noisy", label_noise=0.2, max_steps=10**6)]
    sweep = Sweep(vary=["label_noise"])
    found = sweep_runs(run_table(rows), sweep, scale=1.0)
    assert found["condition"].tolist() == ["base", "noisy"]
    cosine = [{**cells, "schedule": "cosine"} for cells in rows]
    found = sweep_runs(run_table(cosine), sweep, scale=1.0)
    assert found["condition"].tolist() == ["base"]


def test_sweeps_scale(params):
    base = {key: params[key] for key in BASE_KEYS}
    rows = []
    for name, k, n_b in (("base", 20, 100), ("d10k_k36", 36, 28), ("d20k_k36", 36, 56)):
        condition = Condition(**{**base, "k": k, "n_b": n_b})
        run = PlannedRun(name, 0, RANDOM_WEIGHTS, "train")
        rows.append(run_row(run, condition, OUTCOME, Transition(tau=TAU), Diagnostics()))
    sweep = Sweep(vary=["k", "n_b"], dataset_sizes=[10_000, 20_000])
    found = sweep_runs(run_table(rows), sweep, scale=0.1)
    pd.testing.assert_series_equal(
        found["nominal_size"], pd.Series([1000.0, 2000.0, 2000.0]), check_names=False
    )
