"""Every parameter checked, and conditions resolved from a base and named changes to it."""

import re

from mbc.conditions import BASE_KEYS, NETWORK_KEYS, Condition, parse
from mbc.settings import (
    TRANSFER_PREFIX,
    MechanismSettings,
    Settings,
    check_settings,
    with_checkpoints,
)

SCALED_KEYS = ("n_b", "max_steps", "warmup_steps")
"""The keys of a condition that the scale multiplies."""


def resolve_parameters(params: dict) -> tuple[dict[str, Condition], dict[str, Condition]]:
    """Return the named conditions, and the conditions of all that is trained.

    The second are the first, those that are looked into with checkpoints and a later end, and the
    transfers under the names ``transfer_<condition>``.

    Args:
        params: the base condition and all settings, as in params.yaml.

    Raises:
        ValueError: one sentence that names the parameter, its value and what is allowed.
    """
    settings = check_settings({key: params[key] for key in params if key not in BASE_KEYS})
    _check_lists(settings)
    base = {key: params[key] for key in BASE_KEYS if key in params}
    conditions = resolve_conditions(base, settings.conditions, settings.scale)
    check_transfers(conditions, settings.transfers)
    followed = with_checkpoints(conditions, settings.mechanism, settings.scale)
    check_analyses(followed, settings.mechanism, settings.scale)
    transfers = {f"{TRANSFER_PREFIX}{name}": conditions[name] for name in settings.transfers}
    return conditions, followed | transfers


def resolve_conditions(
    base: dict, overrides: dict[str, dict | None], scale: float
) -> dict[str, Condition]:
    """Return every named condition: the base with its own changes, sizes multiplied by the scale.

    Two may come out the same, as lr_5e_4 and the base do with ``-S lr=5e-4``: sweeps count one.

    Args:
        base: one value for each of `BASE_KEYS`.
        overrides: for each condition what it changes; None changes nothing.
        scale: factor on every n_b, and on max_steps and warmup_steps, since the waiting time
            grows with the dataset; rounded, at least 1 (no warm-up stays none).

    Raises:
        ValueError: one sentence that names the parameter, its value and what is allowed.
    """
    if not isinstance(overrides, dict) or not overrides:
        raise ValueError(f"conditions is {overrides!r}: at least one named condition is needed.")
    missing = [key for key in BASE_KEYS if key not in base]
    if missing:
        raise ValueError(f"{missing[0]} is missing: the base condition needs it.")
    resolved: dict[str, Condition] = {}
    for name, changes in overrides.items():
        where = f"conditions.{name}"
        if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise ValueError(
                f"{where}: a condition's name is lower-case letters, digits and underscores, "
                "a letter first."
            )
        if not isinstance(changes, dict | None):
            raise ValueError(f"{where} is {changes!r}: expected the parameters that it changes.")
        own = changes or {}
        unknown = [key for key in own if key not in BASE_KEYS]
        if unknown:
            raise ValueError(
                f"{where}.{unknown[0]} is not a parameter; known are {', '.join(BASE_KEYS)}."
            )
        resolved[name] = _resolve({**base, **own}, scale, where, set(own))
    return resolved


def check_transfers(conditions: dict[str, Condition], transfers: list[str]) -> None:
    """Refuse a transfer whose forward run has another network.

    Raises:
        ValueError: names the transfer and the parameter that differs.
    """
    for name in transfers:
        own, forward = conditions[name], conditions[f"forward_{name}"]
        for key in NETWORK_KEYS:
            values = [getattr(condition, key) for condition in (own, forward)]
            if key != "direction" and values[0] != values[1]:
                raise ValueError(
                    f"transfers names {name}: {key} is {values[0]!r} there and {values[1]!r} in "
                    f"conditions.forward_{name}; weights can only be handed on to the same network."
                )


def check_analyses(
    conditions: dict[str, Condition], settings: MechanismSettings, scale: float
) -> None:
    """Refuse an analysis that would find nothing in one of the runs that it looks into.

    Args:
        conditions: the conditions, followed ones with their checkpoints.
        settings: how they are analysed.
        scale: by which the conditions have been multiplied.

    Raises:
        ValueError: names the parameter, the condition and what it allows.
    """
    for name in settings.conditions:
        condition = conditions[name]
        intervals = settings.displacement_steps // settings.checkpoint_every
        length = intervals * condition.checkpoint_every
        if length > condition.max_steps:
            raise ValueError(
                f"mechanism.displacement_steps is {length}: longer than max_steps "
                f"{condition.max_steps} of conditions.{name}{_after(scale)}."
            )
    for name in settings.gradient_noise:
        size = conditions[name].dataset_size
        if min(settings.noise_batch_sizes) > size // 2:
            raise ValueError(
                f"mechanism.noise_batch_sizes is {settings.noise_batch_sizes}: at least one must "
                f"be at most half of the {size} examples of conditions.{name}{_after(scale)}."
            )


def _check_lists(settings: Settings) -> None:
    """Refuse a value that stands twice in a list of the sections ``sweeps`` and ``mechanism``."""
    sections = {"mechanism": settings.mechanism}
    sections |= {f"sweeps.{name}": sweep for name, sweep in settings.sweeps}
    for where, section in sections.items():
        for key, values in section:
            twice = [v for v in values if values.count(v) > 1] if isinstance(values, list) else []
            if twice:
                raise ValueError(f"{where}.{key} is {values}: {twice[0]} stands twice.")


def _resolve(values: dict, scale: float, where: str, own_keys: set[str]) -> Condition:
    """Return a condition, scaled; a refusal says so if it gives values that are not the file's."""
    scaled = _scaled(values, scale)
    try:
        return parse(Condition, scaled, where, own_keys)
    except ValueError as error:
        message = str(error)
        changed = [key for key in SCALED_KEYS if scaled[key] != values[key]]
        if not any(re.search(rf"\b{key}\b", message) for key in changed):
            raise
        raise ValueError(f"{message.removesuffix('.')}{_after(scale)}.") from None


def _after(scale: float) -> str:
    return "" if scale == 1 else f" (after scale {scale})"


def _scaled(values: dict, scale: float) -> dict:
    scaled = dict(values)
    for key in SCALED_KEYS:
        if type(values[key]) is int and values[key] >= 1:  # others are refused as they stand
            scaled[key] = max(1, round(values[key] * scale))
    return scaled
