"""All parameters checked at once, and the stage that does so."""

import copy

import pytest

from mbc.conditions import BASE_KEYS
from mbc.resolution import resolve_parameters
from mbc.settings import Sweeps, TransitionSettings
from scripts.quick import with_changes
from stages import conditions
from stages.files import read_yaml, write_yaml

KNOWN_SWEEPS = ", ".join(Sweeps.model_fields)
ONE_OF_BASE_KEYS = f"{str(BASE_KEYS[:-1]).strip('()')} or {BASE_KEYS[-1]!r}"
KNOWN_IN_TRANSITION = ", ".join(TransitionSettings.model_fields)


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (
            "transition.tau_fraction",
            1.0,
            "transition.tau_fraction is 1.0: input should be less than 1.",
        ),
        (
            "transition.plateau_window",
            [0.3, 0.1],
            "transition: plateau_window is [0.3, 0.1]: it must rise.",
        ),
        (
            "transition.plateau_window",
            [0.1, 1.0],
            "transition.plateau_window.1 is 1.0: input should be less than 1.",
        ),
        (
            "transition.end_fraction",
            0.95,
            "transition: end_fraction is 0.95: it must be below loss_onset_fraction 0.9.",
        ),
        (
            "transition.typo",
            1,
            f"transition.typo is not a parameter; known are {KNOWN_IN_TRANSITION}.",
        ),
        (
            "transition",
            None,
            f"transition is None: expected a mapping with the parameters {KNOWN_IN_TRANSITION}.",
        ),
        (
            "scaling.thresholds",
            [0.5, 0.5],
            "scaling: thresholds is [0.5, 0.5]: a value stands twice.",
        ),
        (
            "scaling.resamples",
            10,
            "scaling.resamples is 10: input should be greater than or equal to 100.",
        ),
        (
            "mechanism.displacement_steps",
            150,
            "mechanism: displacement_steps is 150: not a multiple of checkpoint_every 100.",
        ),
        (
            "mechanism.displacement_steps",
            50_100,
            "mechanism.displacement_steps is 50100: longer than max_steps 50000 of conditions.k10.",
        ),
        (
            "mechanism.noise_batch_sizes",
            [32, 32],
            "mechanism.noise_batch_sizes is [32, 32]: 32 stands twice.",
        ),
        (
            "mechanism.noise_batch_sizes",
            [100_000],
            "mechanism.noise_batch_sizes is [100000]: at least one must be at most half of the "
            "10000 examples of conditions.k10.",
        ),
        (
            "mechanism.conditions",
            ["k10", "k10"],
            "mechanism.conditions is ['k10', 'k10']: k10 stands twice.",
        ),
        (
            "sweeps.new",
            {"vary": ["k"]},
            f"sweeps.new is not a parameter; known are {KNOWN_SWEEPS}.",
        ),
        (
            "sweeps",
            None,
            f"sweeps is None: expected a mapping with the parameters {KNOWN_SWEEPS}.",
        ),
        (
            "sweeps.linear",
            None,
            "sweeps.linear is None: expected a mapping with the parameters vary, dataset_sizes.",
        ),
        (
            "sweeps.linear.vary",
            ["q"],
            f"sweeps.linear.vary.0 is 'q': input should be {ONE_OF_BASE_KEYS}.",
        ),
        (
            "sweeps.linear.typo",
            1,
            "sweeps.linear.typo is not a parameter; known are vary, dataset_sizes.",
        ),
        (
            "sweeps.linear.vary",
            ["k", "k"],
            "sweeps.linear.vary is ['k', 'k']: k stands twice.",
        ),
        (
            "sweeps.fixed_size.dataset_sizes",
            [100, 200, 100],
            "sweeps.fixed_size.dataset_sizes is [100, 200, 100]: 100 stands twice.",
        ),
    ],
)
def test_bad_settings_inside_a_section_are_refused(params, place, value, sentence):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole sentence is compared
        resolve_parameters(changed({**params, "scale": 1.0}, place, value))
    assert str(refusal.value) == sentence


def changed(params, place, value):
    """Return a copy of the parameters with another value at a place such as ``sweeps.new``."""
    values = copy.deepcopy(params)
    section = values
    *path, key = place.split(".")
    for part in path:
        section = section[part]
    section[key] = value
    return values


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        (
            "conditions.schedule_cosine.warmup_steps",
            60_000,
            "conditions.schedule_cosine: warmup_steps is 6000: longer than max_steps 5000 "
            "(after scale 0.1).",
        ),
        (
            "n_b",
            10,
            "conditions.base: batch_size is 128, but the dataset has only n_b * k = 20 examples "
            "(after scale 0.1).",
        ),
        ("n_b", 0, "n_b is 0: input should be greater than or equal to 1."),
        ("lr", "fast", "lr is 'fast': input should be a valid number."),
        (
            "mechanism.displacement_steps",
            50_100,
            "mechanism.displacement_steps is 5010: longer than max_steps 5000 of conditions.k10 "
            "(after scale 0.1).",
        ),
        (
            "mechanism.noise_batch_sizes",
            [501],
            "mechanism.noise_batch_sizes is [501]: at least one must be at most half of the 1000 "
            "examples of conditions.k10 (after scale 0.1).",
        ),
    ],
)
def test_a_refusal_says_that_its_values_are_scaled(params, place, value, sentence):
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the whole sentence is compared
        resolve_parameters(changed({**params, "scale": 0.1}, place, value))
    assert str(refusal.value) == sentence


def test_committed_and_quick_parameters_are_accepted_at_any_usual_scale(params):
    for accepted in (params, {**params, "scale": 0.1}, {**params, "scale": 1.0}):
        named, trained = resolve_parameters(accepted)
        assert set(named) == set(params["conditions"])
        assert set(trained) - set(named) == {f"transfer_{name}" for name in params["transfers"]}
    resolve_parameters(with_changes(params))


def test_edges_of_what_an_analysis_needs_are_accepted(params):
    values = changed({**params, "scale": 0.1}, "mechanism.displacement_steps", 50_000)
    resolve_parameters(changed(values, "mechanism.noise_batch_sizes", [500, 100_000]))


def written(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.yaml")}


def test_the_stage_replaces_its_files_or_leaves_them_all(params, tmp_path):
    folders = [tmp_path / name for name in ("maps", "networks", "conditions")]
    files = [str(path) for path in (tmp_path / "params.yaml", *folders)]
    write_yaml(tmp_path / "params.yaml", params)
    conditions.main(*files)
    assert {path.stem for path in folders[0].iterdir()} == set(params["conditions"])
    assert read_yaml(folders[2] / "transfer_k05.yaml")["k"] == 5
    before = written(tmp_path)
    for place, value in (
        ("lr", "fast"),
        ("transfers", ["k03"]),
        ("mechanism.conditions", ["linear_k10"]),
        ("mechanism.noise_batch_sizes", [100_000]),
    ):
        write_yaml(tmp_path / "params.yaml", changed(params, place, value))
        with pytest.raises(ValueError):  # noqa: PT011 - which one is tested elsewhere
            conditions.main(*files)
        assert {**written(tmp_path), "params.yaml": b""} == {**before, "params.yaml": b""}
    fewer = {name: changes for name, changes in params["conditions"].items() if name != "k13"}
    write_yaml(tmp_path / "params.yaml", {**params, "conditions": fewer})
    conditions.main(*files)
    assert set(before) - set(written(tmp_path)) == {f"{path.name}/k13.yaml" for path in folders}
