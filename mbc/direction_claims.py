"""Which number answers which claim about direction, transfer and controls (section 5)."""

from dataclasses import replace

from mbc.claims import (
    CUT_SHORT,
    NO_RUNS,
    NOT_REPRODUCED,
    NOT_RUN,
    OPEN,
    OTHER_SIZE,
    REPRODUCED,
    TOLERANCE,
    TOO_FEW,
    Answer,
    Measured,
    share_of,
)

LEFT = 0.9
"""A run has left log k if its candidate loss is below this share of it."""

USED = 1.0
"""A given string is used if shuffling it costs this many nats over the whole answer."""


def judge_directions(paper: dict, effects: dict) -> dict[str, Answer]:
    """Return answers to the claims of section 5 by name.

    Args:
        paper: for each claim its section, words and number.
        effects: the metrics of the other experiments.
    """
    by_character = _slower(
        paper["forward_slower_by_character"], effects["direction_by_character_tau"]
    )
    linear_ends = [run for run in effects["linear"] if "final_ratio" in run]
    swept = [ratio["condition"] for ratio in effects["direction_by_tau"]]

    def by_k(key: str) -> list[dict]:  # where several have one k, that of the sweep counts
        return sorted(effects[key], key=lambda ratio: ratio["condition"] in swept)

    return {
        "forward_slower": _slower(paper["forward_slower"], effects["direction_by_tau"]),
        "forward_slower_by_character": _by_use(by_character, effects["forward_use"]),
        **{
            name: _transfer(paper[name]["compared"], by_k(key))
            for name, key in (
                ("transfer", "transfer_by_tau"),
                ("transfer_by_character", "transfer_by_character_tau"),
            )
        },
        "linear": _linear(linear_ends),
        "linear_level": _linear_level(paper["linear_level"]["limit"], linear_ends),
    }


def _linear(ends: list[dict]) -> Answer:
    return share_of(
        [run["tau_status"] == "censored" and run["final_ratio"] > LEFT for run in ends],
        f"no transition within the step budget, and a last candidate loss above {LEFT:g} log k",
    )


def _linear_level(limit: float, ends: list[dict]) -> Answer:
    ours, verdict, rule = share_of(
        [0.95 < run["final_ratio"] < 1.05 and run["largest_z_gap"] < limit for run in ends],
        f"last candidate loss within 5% of log k and no z-gap of {limit:g} nats at any evaluation",
    )
    notes = [
        f"{run['run']}: {run['final_ratio']:.2f} log k, z-gap up to {run['largest_z_gap']:.2f}"
        for run in ends
    ]
    return replace(ours, note="; ".join([ours.note, *notes])), verdict, rule


def _by_use(answer: Answer, forward_use: list[dict]) -> Answer:
    """Leave a comparison open whose forward runs met the criterion without the given string.

    Forward targets are n_b different strings: once their first characters are known the others
    follow without A, so that the loss per character halves while A is not used at all.
    """
    ours, verdict, rule = answer
    rule += f"; undecided if a forward run met it while shuffling A cost less than {USED:g} nat"
    unused = [use for use in forward_use if use["gap"] < USED]
    if not unused or verdict == NOT_RUN:
        return ours, verdict, rule
    gaps = ", ".join(f"{use['gap']:.2f}" for use in unused)
    note = f"{ours.note}; forward runs met it before they used A (shuffled: {gaps} nats)"
    return replace(ours, note=note), OPEN, rule


def _slower(paper: dict, ratios: list[dict]) -> Answer:
    if not ratios:
        return NO_RUNS
    known = [ratio["value"] for ratio in ratios if "value" in ratio]
    low, high = paper["low"], paper["high"]
    rule = (
        f"by the ratio at each k: reproduced if all lie within {low:g} and {high:g} widened by a "
        "quarter, in its direction only if all are above 1, undecided if a run was censored"
    )
    ours = Measured(
        sum(known) / len(known) if known else None,
        n_runs=2 * sum(ratio["n_seeds"] for ratio in ratios),
        note=_by_k(ratios),
    )
    if not known:
        return ours, CUT_SHORT, rule
    if min(known) <= 1:
        return ours, NOT_REPRODUCED, rule
    if any(ratio["n_left_out"] for ratio in ratios):
        return ours, CUT_SHORT, rule
    inside = min(known) >= low / 1.25 and max(known) <= high * 1.25
    return ours, REPRODUCED if inside else OTHER_SIZE, rule


def _transfer(compared: list[int], ratios: list[dict]) -> Answer:
    small, large = compared
    rule = (
        f"reproduced if in every seed the speed-up is above 1 at k = {large} and below 1 at "
        f"k = {small}, not reproduced if one of them lies on the other side, else undecided, and "
        f"also where a run was censored; a ratio of fewer than 3 seeds within {TOLERANCE:.0%} of 1 "
        "lies on neither"
    )
    if not ratios:
        return NO_RUNS
    by_k = {ratio["k"]: ratio for ratio in ratios}
    helps = [_side(by_k.get(k, {})) for k in (large, small)]
    ours = Measured(
        by_k.get(large, {}).get("value"),
        n_runs=2 * sum(ratio["n_seeds"] for ratio in ratios),
        note=_by_k(ratios),
    )
    if any(ratio["n_left_out"] for ratio in ratios if ratio["k"] in compared):
        return ours, CUT_SHORT, rule
    if helps == [1, -1]:
        return ours, REPRODUCED, rule
    if helps[0] == -1 or helps[1] == 1:
        return ours, NOT_REPRODUCED, rule
    return ours, TOO_FEW, rule


def _side(ratio: dict) -> int:
    """Return 1 for a speed-up above 1 in every seed, -1 for one below 1, 0 if it is neither."""
    value = ratio.get("value", 1.0)
    low, high = ratio.get("low", value), ratio.get("high", value)
    margin = 1 + TOLERANCE if ratio.get("n_seeds", 0) < 3 else 1.0
    return int(low > 1 and value > margin) - int(high < 1 and value < 1 / margin)


def _by_k(ratios: list[dict]) -> str:
    return ", ".join(f"k = {ratio['k']}: {ratio_text(ratio)}" for ratio in ratios)


def ratio_text(ratio: dict) -> str:
    """Return a ratio of `mbc.effects`, its range over seeds, and how many had no transition."""
    if "value" not in ratio:
        return "no transition in a run"
    lost = f" (without {ratio['n_left_out']} seeds)" if ratio["n_left_out"] else ""
    spread = f" ({ratio['low']:.2f} to {ratio['high']:.2f})" if "low" in ratio else ""
    return f"{ratio['value']:.2f}{spread}{lost}"
