import pandas as pd

from mbc.claims import NOT_REPRODUCED, OTHER_SIZE, REPRODUCED
from mbc.differences import differences, ruled_out
from mbc.runs import RANDOM_WEIGHTS


def claim(verdict, paper, value):
    numbers = {} if paper is None else {"paper": paper}
    ours = {"value": value}
    return {"claim": verdict, "remark": "", **numbers, "ours": ours, "verdict": verdict}


def test_only_numbers_that_differ_are_listed():
    claims = {
        "same": claim(REPRODUCED, 1.0, 1.0),
        "larger": claim(OTHER_SIZE, 2.0, 3.0),
        "negative": claim(NOT_REPRODUCED, -0.5, 0.5),
        "a bound": {**claim(OTHER_SIZE, 2.0, 5.0), "ours": {"value": 5.0, "bound": "at least"}},
        "a share": claim(NOT_REPRODUCED, None, 0.0),
        "below a range": {**claim(NOT_REPRODUCED, None, 0.85), "paper_range": [1.7, 4.4]},
        "above a range": {**claim(OTHER_SIZE, None, 8.8), "paper_range": [1.7, 4.4]},
        "unknown": {**claim(NOT_REPRODUCED, 1.0, 0.0), "ours": {"note": "none"}},
    }
    found = differences(claims)
    assert found["paper"].tolist() == ["2", "-0.5", "2", "1.7 to 4.4", "1.7 to 4.4"]
    assert found["ours"].tolist() == ["3", "0.5", "≥ 5", "0.85", "8.8"]
    assert found["ours / paper"].tolist() == ["1.5", "", "≥ 2.5", "0.5", "2"]
    columns = ["claim", "paper", "ours", "ours / paper", "remark"]
    assert differences({}).columns.tolist() == columns


def run(
    condition,
    seed,
    tau,
    status="observed",
    character_tau=100,
    start_from=RANDOM_WEIGHTS,
    leads=(0.2, 0.5),
):
    return {
        **{"run": f"{condition}-{seed}", "condition": condition, "seed": seed},
        **{"start_from": start_from, "tau": tau, "tau_status": status},
        **{"character_tau": character_tau, "character_tau_status": "observed"},
        **{"lead_fraction": leads[0], "lead_fraction_string": leads[1]},
    }


def sweeps(table):
    """Return the controls that belong to the base run, which stands among them."""
    started = table[table["start_from"] == RANDOM_WEIGHTS]
    return {
        name: started[started["condition"].isin(["base", condition])]
        for name, condition in (
            ("schedule", "schedule_cosine"),
            ("initialisation", "initialisation_scaled"),
        )
    }


def test_each_control_is_compared_with_the_base_run():
    rows = [
        *(run("base", 0, 100, character_tau=110), run("base", 1, 150)),
        *(run("schedule_cosine", 0, 120), run("schedule_cosine", 1, 180)),
        run("schedule_cosine", 2, 180),
        *(run("initialisation_scaled", 0, 80, status="censored"), run("k03", 0, 10)),
        run("base", 0, 70, start_from="forward_base-0"),
    ]
    scaling = {
        "dataset_size": {"exponent": 1.0},
        "thresholds": {"0.3": {"exponent": 1.1}, "0.5": {"exponent": 1.0}, "0.7": {}},
    }
    table = pd.DataFrame(rows)
    everything = ruled_out(table, sweeps(table), scaling).set_index("varied")
    found = everything[everything["number"] != "lead of base"]
    assert found.loc["schedule (schedule_cosine-0)", "ratio"] == "1.20"
    assert found.loc["schedule (schedule_cosine-1)", "ratio"] == "1.20"  # of the same seed
    assert "schedule (schedule_cosine-2)" not in found.index  # no base run of this seed
    assert found.loc["initialisation (initialisation_scaled-0)", "varied to"] == "> 80"
    assert found.loc["initialisation (initialisation_scaled-0)", "ratio"] == ""
    assert found.loc["seed (base-1)", "ratio"] == "1.50"
    assert found.loc["definition (loss per character, base-0)", "ratio"] == "1.10"
    assert found.loc["definition (threshold)", "ratio"].tolist() == ["1.00", "1.10"]
    assert not found.index.str.contains("k03").any()


def test_each_lead_is_compared_with_that_of_the_base_run():
    rows = [
        *(run("base", 0, 100, leads=(-0.2, 0.5)), run("base", 1, 100, leads=(0.4, 0.6))),
        run("schedule_cosine", 1, 120, leads=(0.1, 0.6)),
        run("initialisation_scaled", 1, 120, leads=(float("nan"), 0.6)),
    ]
    table = pd.DataFrame(rows)
    found = ruled_out(table, sweeps(table), {"dataset_size": {}, "thresholds": {}})
    leads = found[found["number"] == "lead of base"].set_index("varied")
    columns = ["as defined", "varied to", "ratio"]
    cosine = leads.loc["schedule (schedule_cosine-1)", columns].tolist()
    assert cosine == ["0.40", "0.10", ""]  # of the same seed
    scaled = leads.loc["initialisation (initialisation_scaled-1)", columns].tolist()
    assert scaled == ["0.40", "", ""]  # its onset was not reached
    assert leads.loc["seed (base-1)", columns].tolist() == ["-0.20", "0.40", ""]
    of_answer = leads.loc["definition (z-gap of the whole answer, base-0)", columns].tolist()
    assert of_answer == ["-0.20", "0.50", ""]
    assert leads.loc["definition (z-gap of the whole answer, base-1)", "varied to"] == "0.60"


def test_without_a_base_run_nothing_is_compared():
    scaling = {"dataset_size": {}, "thresholds": {}}
    for condition, n_rows in (("k03", 0), ("base", 2)):
        table = pd.DataFrame([run(condition, 0, 10)])
        assert len(ruled_out(table, sweeps(table), scaling)) == n_rows
