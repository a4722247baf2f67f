import re

import pytest

from mbc.conditions import BASE_KEYS, run_name
from mbc.resolution import check_transfers, resolve_conditions
from mbc.settings import check_settings, with_checkpoints


@pytest.fixture
def base(params):
    return {key: params[key] for key in BASE_KEYS}


@pytest.fixture
def others(params):
    return {key: value for key, value in params.items() if key not in BASE_KEYS}


def resolve(base, **changes):
    return resolve_conditions(base, {"base": None, "other": changes}, scale=1.0)["other"]


def test_a_condition_is_the_base_with_its_changes(base):
    condition = resolve(base, lr=5e-4, k=3)
    assert condition.lr == 5e-4
    assert condition.k == 3
    expected = {**base, "lr": 5e-4, "k": 3}
    assert condition.model_dump() == {**expected, "checkpoint_every": 0}
    assert condition.dataset_size == 3000


def test_scale_multiplies_n_b_and_leaves_at_least_one(base):
    changes = {"base": None, "other": {"n_b": 278, "batch_size": 1}}
    assert resolve_conditions(base, changes, 0.1)["other"].n_b == 28
    changes = {"other": {"batch_size": 1}}
    assert resolve_conditions(base, changes, 1e-6)["other"].n_b == 1


def test_scale_multiplies_step_budgets_too(base):
    changes = {"other": {"schedule": "cosine", "warmup_steps": 500}}
    scaled = resolve_conditions(base, changes, 0.1)["other"]
    assert (scaled.max_steps, scaled.warmup_steps) == (base["max_steps"] // 10, 50)
    assert resolve_conditions(base, {"base": None}, 0.1)["base"].warmup_steps == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kk": 3}, "conditions.other.kk is not a parameter"),
        ({"k": 3, "checkpoint_every": 5}, "conditions.other.checkpoint_every is not a parameter"),
        ({"lr": "fast"}, "conditions.other.lr is 'fast'"),
        ({"lr": -1e-3}, "conditions.other.lr is -0.001"),
        ({"lr": 0.0}, "conditions.other.lr is 0.0"),
        ({"lr": float("nan")}, "conditions.other.lr is nan"),
        ({"lr": float("inf")}, "conditions.other.lr is inf"),
        ({"k": 0}, "conditions.other.k is 0"),
        ({"k": -2}, "conditions.other.k is -2"),
        ({"k": 2.5}, "conditions.other.k is 2.5"),
        ({"k": "4"}, "conditions.other.k is '4'"),
        ({"k": True}, "conditions.other.k is True"),
        ({"k": 37}, "conditions.other: k is 37"),
        ({"n_b": 0}, "conditions.other.n_b is 0"),
        ({"batch_size": 20_001}, "batch_size is 20001.*20000"),
        ({"batch_size": 0}, "conditions.other.batch_size is 0"),
        ({"batch_size": -1}, "conditions.other.batch_size is -1"),
        ({"batch_size": 1.5}, "conditions.other.batch_size is 1.5"),
        ({"label_noise": 1.1}, "conditions.other.label_noise is 1.1"),
        ({"label_noise": 0.1, "direction": "forward"}, "label_noise is 0.1"),
        ({"fibre": "loose"}, "conditions.other.fibre is 'loose'.*distinct"),
        ({"d_model": 130}, "d_model is 130"),
        ({"warmup_steps": 5}, "warmup_steps is 5"),
        ({"warmup_steps": 60_000, "schedule": "cosine"}, "warmup_steps is 60000"),
        ({"stop_after": 0.5}, "conditions.other.stop_after is 0.5"),
        ({"weight_decay": -0.1}, "conditions.other.weight_decay is -0.1"),
        ({"max_steps": None}, "conditions.other.max_steps is None"),
    ],
)
def test_bad_values_are_refused_in_one_sentence_with_their_name(base, changes, words):
    with pytest.raises(ValueError, match=words) as refusal:
        resolve(base, **changes)
    assert "\n" not in str(refusal.value)


def test_a_bad_base_value_is_named_without_a_condition(base):
    with pytest.raises(ValueError, match=r"^lr is 'fast'"):
        resolve_conditions({**base, "lr": "fast"}, {"base": None}, 1.0)
    with pytest.raises(ValueError, match=r"^lr is missing"):
        resolve_conditions({k: v for k, v in base.items() if k != "lr"}, {"base": None}, 1.0)


@pytest.mark.parametrize("size", [20_000, 19_999, 1])
def test_batches_up_to_the_dataset_are_allowed(base, size):
    assert resolve(base, batch_size=size).batch_size == size


@pytest.mark.parametrize("k", [1, 2])
def test_smallest_ambiguities_are_allowed(base, k):
    assert resolve(base, k=k).k == k


def test_a_condition_may_come_out_like_the_base(base):
    found = resolve_conditions({**base, "lr": 5e-4}, {"base": None, "lr_5e_4": {"lr": 5e-4}}, 1.0)
    assert found["base"] == found["lr_5e_4"]


@pytest.mark.parametrize("name", ["k-3", "K3", "3k", "", 10, None])
def test_names_are_words(base, name):
    with pytest.raises(ValueError, match="a condition's name"):
        resolve_conditions(base, {name: {"k": 3}}, 1.0)


@pytest.mark.parametrize("changes", [[], "k: 3", 3])
def test_changes_are_a_mapping(base, changes):
    with pytest.raises(ValueError, match=r"conditions\.other is"):
        resolve_conditions(base, {"other": changes}, 1.0)


def test_the_committed_parameters_are_valid(base, others):
    settings = check_settings(others)
    assert len(resolve_conditions(base, settings.conditions, settings.scale)) == len(
        settings.conditions
    )
    assert run_name("k03", 42) == "k03-42"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("seeds", [1, 1], "seeds is .*1 stands twice"),
        ("seeds", [], "seeds is"),
        ("seeds", [-1], r"seeds\.0 is -1"),
        ("seeds", [1.5], r"seeds\.0 is 1.5"),
        ("seeds", 42, "seeds is 42"),
        ("scale", 0.0, "scale is 0.0"),
        ("scale", "full", "scale is 'full'"),
        ("conditions", {"k03": {"k": 3}}, r"conditions\.base must be there"),
        ("conditions", {"base": {"k": 3}}, r"conditions\.base must be there"),
        ("transfers", ["k99"], "transfers names k99: there is no conditions.k99"),
        ("transfers", ["k03"], "no conditions.forward_k03"),
        ("transfers", ["k05", "k05"], "transfers is .*k05 stands twice"),
        ("learning_rate", 1e-3, "learning_rate is not a parameter; known are fibre"),
    ],
)
def test_bad_settings_are_refused(others, key, value, words):
    with pytest.raises(ValueError, match=words) as refusal:
        check_settings({**others, key: value})
    assert re.fullmatch(r"[^\n]+\.", str(refusal.value))


def test_followed_conditions_keep_checkpoints_and_go_on(base, others):
    settings = check_settings(others).mechanism
    overrides = {"base": None, "k10": {"k": 10}, "k05": {"k": 5}}
    overrides |= {"lr_3e_4": {"lr": 3e-4}, "lr_2e_3": {"lr": 2e-3}}
    followed = with_checkpoints(resolve_conditions(base, overrides, 0.1), settings, 0.1)
    kept = {name: (c.checkpoint_every, c.stop_after) for name, c in followed.items()}
    assert kept == {
        **{"base": (10, 2.1), "k10": (10, 2.1), "k05": (0, 1.3)},
        **{"lr_3e_4": (10, 1.3), "lr_2e_3": (10, 1.3)},
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"network": "linear"}, "its network is 'linear', only 'transformer'"),
        ({"direction": "forward"}, "its direction is 'forward', only 'backward'"),
        ({"k": 1}, "its k is 1, so it has no plateau"),
    ],
)
def test_what_cannot_be_looked_into_is_refused(base, others, changes, words):
    settings = check_settings(others).mechanism.model_copy(
        update={"conditions": ["base"], "gradient_noise": []}
    )
    conditions = resolve_conditions({**base, **changes}, {"base": None}, 1.0)
    with pytest.raises(ValueError, match=f"mechanism names base: {words}"):
        with_checkpoints(conditions, settings, 1.0)


def test_weights_are_handed_on_to_the_same_network_only(base):
    overrides = {"base": None, "forward_base": {"direction": "forward", "d_mlp": 64}}
    with pytest.raises(ValueError, match=r"transfers names base: d_mlp is 512 there and 64 in"):
        check_transfers(resolve_conditions(base, overrides, 1.0), ["base"])
    overrides["forward_base"] = {"direction": "forward"}
    check_transfers(resolve_conditions(base, overrides, 1.0), ["base"])
