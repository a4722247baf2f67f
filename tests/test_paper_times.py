import pandas as pd
import pytest

from mbc.paper_times import beside_paper, paper_range, with_paper_tau

TIMES = {"dataset_size": {"base": 400, "k36": 800}, "batch_size": {"base": 320}}


def runs(*rows):
    table = pd.DataFrame(rows, columns=["condition", "tau", "tau_status"])
    seeds = table.groupby("condition").cumcount()
    table = table.assign(direction="backward", batch_size=128, seed=seeds)
    return table.astype({"tau": "Int64"})


def test_the_papers_places_may_differ():
    assert paper_range(TIMES, "base") == (320, 400)
    assert paper_range(TIMES, "k36") == (800, 800)
    assert paper_range(TIMES, "other") is None


def test_in_a_sweep_its_own_place_counts():
    table = with_paper_tau(
        runs(("base", 300, "observed"), ("other", 1, "observed")), TIMES["batch_size"]
    )
    assert table["paper_tau"].tolist() == pytest.approx([320, float("nan")], nan_ok=True)
    assert table["paper_tau_examples"].iloc[0] == 320 * 128


def test_a_condition_counts_once_however_many_seeds_it_has():
    table = runs(
        ("base", 320, "observed"),
        ("base", 405, "observed"),  # geometric mean 360, between the paper's
        ("k36", 1600, "observed"),
    )
    sentence, alone = beside_paper(table, TIMES)
    assert sentence.startswith("Of 2 conditions")
    assert "longer in 1 and shorter in 0" in sentence
    assert "1.00 to 2.00 in all" in sentence
    assert "up to 1.25." in sentence
    assert alone == "The median is 1.50 with seed 0, 1.01 with seed 1."


def test_a_condition_with_a_censored_seed_and_one_that_the_paper_lacks_do_not_count():
    table = runs(("k36", 900, "observed"), ("k36", 5000, "censored"), ("other", 5, "observed"))
    assert beside_paper(table, TIMES) == []
    assert beside_paper(table, {}) == []
