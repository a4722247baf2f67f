import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mbc.conditions import BASE_KEYS
from mbc.training import Batches, batch_loss, start, training_tree
from scripts import bench, bench_variants
from scripts.bench import Way, Worker, print_results, ratios, steps_per_second
from scripts.bench_variants import (
    BFLOAT16,
    LARGEST_DIFFERENCE,
    OUR_PRODUCTS,
    OURS,
    PLAIN,
    PLAIN_PRODUCTS,
    VARIANTS,
    Timing,
    Variant,
    base_condition,
    examples_of,
    largest_difference,
    plain_losses,
    plain_model,
    products_of,
    products_of_step,
)
from tests.conftest import CPU, ROOT, initial

WAYS = [Way(1, 2), Way(2, 1)]


@pytest.fixture(scope="module")
def condition(make_condition):
    return make_condition()


@pytest.fixture(scope="module")
def data(condition):
    return examples_of(condition)


def test_both_loops_give_the_same_losses(condition, data):
    assert largest_difference(condition, data, 20) <= LARGEST_DIFFERENCE


def test_another_learning_rate_is_noticed(condition, data, monkeypatch):
    other = condition.model_copy(update={"lr": condition.lr * 1.001})
    monkeypatch.setattr(
        bench_variants, "plain_losses", lambda bridge, _, data: plain_losses(bridge, other, data)
    )
    assert largest_difference(condition, data, 20) > LARGEST_DIFFERENCE


def test_the_base_condition_is_of_the_papers_size(params):
    base = base_condition({**params, "precision": "bfloat16", "network": "linear"})
    assert (base.precision, base.network) == ("float32", "transformer")
    assert base.n_b == params["n_b"]
    with pytest.raises(ValueError, match="base condition"):
        base_condition({**{key: params[key] for key in BASE_KEYS}, "precision": 3, "lr": -1.0})


def multiply_adds(products):
    return sum(product.multiply_adds for product in products)


def test_multiply_adds_by_hand(make_condition):
    small = make_condition(n_layers=2, d_model=4, d_mlp=8)
    # keys, values, queries, output of 16 weights each, two of the MLP of 32, unembedding of 4 * 40
    whole = 10 * (2 * (4 * 16 + 2 * 32) + 160)
    assert multiply_adds(products_of_step(small, tokens=10, asked=10)) == 3 * whole
    tree = 10 * (4 * 16 + 2 * 32) + 10 * (2 * 16) + 3 * (2 * 16 + 2 * 32 + 160)
    assert multiply_adds(products_of_step(small, tokens=10, asked=3)) == 3 * tree


@pytest.mark.parametrize("variant", [PLAIN_PRODUCTS, OUR_PRODUCTS])
def test_multiply_adds_are_those_of_a_step(make_condition, variant):
    condition = make_condition(n_layers=2)
    data = examples_of(condition)
    one_dnn = torch.ops.mkldnn._linear_pointwise
    ours = {one_dnn: lambda inputs, weight, *_, **__: 2 * inputs[0] * inputs[1] * weight[0]}
    with FlopCounterMode(display=False, custom_mapping=ours) as counter:
        if variant == PLAIN_PRODUCTS:
            next(plain_losses(plain_model(condition), condition, data))
        else:
            network = start(condition, initial(condition), CPU).network
            tree, answers = training_tree(data, *Batches(condition, data, 0).at(0), CPU)
            batch_loss(network, tree, answers).backward()
    counts = counter.get_flop_counts()["Global"]
    with_weights = sum(
        counts.get(op, 0) for op in (torch.ops.aten.mm, torch.ops.aten.addmm, one_dnn)
    )
    assert with_weights == 2 * multiply_adds(products_of(variant, condition, data))


def test_a_long_run_weights_steps_by_how_often_they_come():
    timing = Timing(usual=0.1, evaluated=0.5, evaluations_per_step=0.02)
    assert timing.seconds_per_step == pytest.approx(0.98 * 0.1 + 0.02 * 0.5)
    assert timing.evaluation_share == pytest.approx(0.02 * 0.4 / timing.seconds_per_step)
    assert steps_per_second([timing, timing]) == pytest.approx(2 / timing.seconds_per_step)
    assert Timing(0.1, 0.0, 0.0).evaluation_share == 0


def made_up_speeds():
    speeds = {(variant, way): 4.0 for variant in VARIANTS for way in WAYS}
    speeds[PLAIN, WAYS[1]] = 5.0
    speeds[OURS, WAYS[0]], speeds[OURS, WAYS[1]] = 12.0, 15.0
    speeds[BFLOAT16, WAYS[0]] = 10.0
    speeds[OUR_PRODUCTS, WAYS[1]] = 20.0
    return speeds


def test_ratios_take_the_better_way():
    result = ratios(made_up_speeds(), WAYS)
    assert result[f"{OURS} / {PLAIN}"] == pytest.approx(15 / 5)
    assert result[f"{BFLOAT16} / {PLAIN}"] == pytest.approx(10 / 5)
    assert result[f"{OURS} / {OUR_PRODUCTS}"] == pytest.approx(15 / 20)
    assert result[f"2 processes x 1 thread / 1 process x 2 threads: {OURS}"] == pytest.approx(1.25)


def test_one_core_has_one_way():
    speeds = {(variant, Way(1, 1)): 2.0 for variant in VARIANTS}
    assert set(ratios(speeds, [Way(1, 1)]).values()) == {1.0}
    assert not any("process" in name for name in ratios(speeds, [Way(1, 1)]))


def test_results_show_medians_ratios_and_shares(capsys):
    timings = {}
    for (variant, way), speed in made_up_speeds().items():
        slow, usual, fast = (
            [Timing(way.processes / (speed * factor), 0.0, 0.0)] * way.processes
            for factor in (0.5, 1, 3)
        )
        timings[variant, way] = [fast, slow, usual]
    for way in WAYS:
        for variant in (OURS, BFLOAT16):
            timings[variant, way] = [[Timing(0.1, 0.6, 0.02)] * way.processes] * 3
    print_results(timings, WAYS)
    printed = capsys.readouterr().out
    assert "5.00 (2.50 to 15.00)" in printed
    assert f"{OURS}, an evaluation every 50 steps" in printed
    assert "9.1%" in printed


def test_every_variant_takes_steps(condition, data):
    for name in VARIANTS:
        variant = Variant(name, condition, data)
        first, second = (variant.measure(0.02) for _ in range(2))
        assert first.usual > 0
        assert (second.evaluated > 0) == (name in (OURS, BFLOAT16))


def test_a_worker_measures_and_ends(condition, monkeypatch):
    monkeypatch.chdir(ROOT)
    with Worker(condition, [OURS, OUR_PRODUCTS], threads=1) as worker:
        worker.wait_until_ready()
        for variant in (OURS, OUR_PRODUCTS):
            worker.ask(variant, 0.1)
            assert 0 < worker.answer().usual < 10
        worker.ask("unknown", 0.1)
        with pytest.raises(OSError, match="ended with status 1"):
            worker.answer()


def test_losses_that_differ_end_it(monkeypatch, make_condition, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(bench, "base_condition", lambda _: make_condition())
    monkeypatch.setattr(bench, "largest_difference", lambda *_: float("nan"))
    monkeypatch.setattr("sys.argv", ["bench"])
    assert bench.main() == 1
    assert "nan" in capsys.readouterr().out
