"""Conditions resolved from a base and named changes to it."""

import re

from mbc.conditions import BASE_KEYS, NETWORK_KEYS, Condition, parse


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
        condition = parse(Condition, _scaled({**base, **own}, scale), where, own_keys=set(own))
        resolved[name] = condition
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


def _scaled(values: dict, scale: float) -> dict:
    scaled = dict(values)
    for key in ("n_b", "max_steps", "warmup_steps"):
        if type(values[key]) is int and values[key] >= 1:  # others are refused as they stand
            scaled[key] = max(1, round(values[key] * scale))
    return scaled
