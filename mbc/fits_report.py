"""Fits and trends of the waiting time, as tables and sentences for people."""

import numpy as np
import pandas as pd

from mbc.settings import NOISE_SWEEPS


def noise_tables(sweeps: dict[str, pd.DataFrame], effects: dict) -> list[str]:
    """Return for each sweep of gradient noise its waiting times and their trend.

    Args:
        sweeps: of `mbc.runs.all_sweeps`.
        effects: the metrics of the other experiments.
    """
    parts = []
    for name, column in NOISE_SWEEPS.items():
        parts += [_noise_table(sweeps[name], column), _trends(effects.get(name, {}))]
    return [part for part in parts if part]


def _trends(effect: dict) -> str:
    """Return trend tests of one sweep, in steps and in examples, and its censored fit in words."""
    sentences = []
    for unit in ("steps", "examples"):
        trend = effect.get(unit, {})
        if "p_value" in trend:
            counted = trend["n_observed"] + trend["n_censored"]
            sentences.append(
                f"In {unit}: {trend['monotone']}, concordance {trend['concordance']:+.2f} "
                f"(p = {trend['p_value']:.2g} by permutation, {counted} runs, "
                f"{trend['n_censored']} censored)."
            )
    fit = effect.get("censored_power_law", {})
    if "exponent" in fit:
        sentences.append(
            f"Power law in steps with censored runs as such: exponent {fit['exponent']:.2f} "
            f"{_interval(fit.get('interval'))}."
        )
    return " ".join(sentences)


def _noise_table(runs: pd.DataFrame, column: str) -> str:
    """Return a sweep as the paper's Table 1: times in steps and examples, relative to the least."""
    groups = runs.groupby(column)
    late = groups["tau_status"].agg(lambda status: (status != "observed").sum())
    complete, rows = late == 0, {"runs": groups.size()}
    for moment, unit in (("tau", "steps"), ("tau_examples", "examples")):
        means = np.exp(
            groups[moment].agg(lambda times: np.log(times.astype(float).clip(lower=1)).mean())
        )
        means = means[complete]
        rows[f"τ ({unit})"] = means.map("{:.0f}".format)
        rows[f"ratio ({unit})"] = (means / means.min()).map("{:.2f}".format)
    table = pd.DataFrame(rows).astype(object)
    lost = "no transition in " + late.astype(str) + " of " + rows["runs"].astype(str)
    for name in ("τ (steps)", "τ (examples)"):
        table.loc[~complete, name] = lost[~complete]
    return table.fillna("").rename_axis(column).reset_index().to_markdown(index=False)


def fit_table(scaling: dict) -> str:
    """Return the fits of the waiting time as a table, and what stands beside them.

    Args:
        scaling: the scaling metrics.
    """
    percent = f"{scaling['confidence']:.0%}"
    rows = [
        _fit_row("τ in D, n_b fixed", scaling["dataset_size"], percent),
        *(
            _fit_row(f"τ in k, D = {size}", fit, percent)
            for size, fit in scaling["fixed_size"].items()
        ),
        *(
            _fit_row(f"τ in D at threshold {threshold}", fit, percent)
            for threshold, fit in scaling["thresholds"].items()
        ),
    ]
    return (
        pd.DataFrame(rows).to_markdown(index=False)
        + "\n\n"
        + _beside_the_fit(scaling["dataset_size"])
        + "\n\nBootstrap: percentile intervals; conditions are resampled, then seeds within them. "
        "Equivalent: two one-sided tests at level 0.05 against the margin in params.yaml."
    )


def _beside_the_fit(law: dict) -> str:
    parts = []
    censored = law["censored"]
    if "exponent" in censored:
        parts.append(
            f"With censored runs taken as such (log-normal accelerated failure time) the exponent "
            f"is {censored['exponent']:.3f} {_interval(censored.get('interval'))}."
        )
    if "leave_one_out" in law:
        low, high = law["leave_one_out"]
        parts.append(
            f"Leaving out one condition at a time it lies between {low:.3f} and {high:.3f}."
        )
    mixed = law["mixed_model"]
    if "exponent" in mixed:
        parts.append(
            "A mixed model with a random intercept for each condition gives "
            f"{mixed['exponent']:.3f} {_interval(mixed.get('interval'))}."
        )
    if "best" in law["laws"]:
        differences = [
            f"{fit['law']} {fit['difference']:.1f}"
            for fit in law["laws"]["laws"]
            if "difference" in fit
        ]
        beside = f", differences: {', '.join(differences)}" if differences else ""
        parts.append(
            f"By AICc the best law is: {law['laws']['best']}{beside} (below 2 two laws cannot be "
            "told apart)."
        )
    parts += [
        f"{name}: {part['statement']}"
        for name, part in (
            ("Censored fit", censored),
            ("Mixed model", mixed),
            ("Laws", law["laws"]),
        )
        if part["statement"]
    ]
    return " ".join(parts)


def _fit_row(name: str, fit: dict, percent: str) -> dict:
    test = fit.get("equivalence")
    return {
        "fit": name,
        "exponent": _number(fit.get("exponent")),
        f"bootstrap {percent}": _interval(fit.get("bootstrap_interval")),
        f"HC3 {percent}": _interval(fit.get("hc3_interval")),
        "R²": _number(fit.get("r_squared")),
        "runs": fit["n_runs"],
        "left out": fit["n_left_out"],
        "equivalent to 0": "" if test is None else _equivalence_text(test),
        "remark": fit["statement"],
    }


def _equivalence_text(test: dict) -> str:
    if "p_value" not in test:
        return "too few points"
    verdict = "yes" if test["equivalent"] else "not shown"
    return f"{verdict} (margin {test['margin']:g}, p = {test['p_value']:.3f})"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _interval(bounds: list[float] | None) -> str:
    return "" if bounds is None else f"[{bounds[0]:.3f}, {bounds[1]:.3f}]"
