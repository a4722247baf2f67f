"""The report: tables and figures put together as Markdown."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mbc.claims import VERDICTS
from mbc.differences import BOUNDS, differences, ruled_out
from mbc.mechanism_report import mechanism_lines
from mbc.runs import moment_text
from mbc.settings import NOISE_SWEEPS

FIGURES = (
    (
        "waiting_time",
        "Waiting time against dataset size (Figure 4)",
        "Each point is a run of the dataset-size sweep: k varies, n_b does not. "
        "The line is the power law fitted by least squares, the band its bootstrap interval.",
    ),
    (
        "anatomy",
        "Anatomy of a run",
        "The base run. The candidate loss stands at log k almost at once, because it ranks the "
        "right answer among k others of the same fibre; the losses by character, over the whole "
        "alphabet, and the mass on the fibre's first characters say what has been learned of the "
        "marginal. Vertical lines: onset, loss onset, waiting time.",
    ),
    (
        "loss_curves",
        "Loss curves (Figure 1)",
        "Candidate loss of the runs of the dataset-size sweep; dotted lines mark log k.",
    ),
    (
        "cascade",
        "Cascade (Figure 3a)",
        "When the z-gap of the first character and of the whole answer passes its threshold, when "
        "the candidate loss leaves log k, and the waiting time. Hollow: not reached.",
    ),
    ("fixed_size", "Waiting time at fixed dataset size (Figure 5)", "k varies, and n_b = D / k."),
    (
        "batch_size",
        "Batch size (Table 1, Figure 2a)",
        "The same waiting times in steps and in examples.",
    ),
    ("learning_rate", "Learning rate (section 3.4)", "At the base condition's batch size."),
    (
        "label_noise",
        "Label noise (Figure 2b)",
        "Targets replaced within their fibre; this also makes the task itself harder.",
    ),
    (
        "survival",
        "Runs still without transition (Kaplan-Meier)",
        "A mark is a transition, a stroke a run that ended without one: its curve stays above 0. "
        "With one seed a curve is a single step, without interval.",
    ),
    (
        "direction",
        "Direction and transfer (Table 2)",
        "Forward is A → B; `backward after forward` starts from the forward run's last weights. "
        "The right panel's criterion means the same in both directions.",
    ),
    (
        "linear",
        "Linear networks (appendix G)",
        "Two linear layers on the embeddings of B and z, beside the transformer.",
    ),
    (
        "structured",
        "Structured fibres beside distinct ones",
        "Where the fibre can be read off the first character of B, the loss of the answer's only "
        "character can stand at log k while shuffling B is costly and shuffling z is not: "
        "that is the marginal P(A|B), learned.",
    ),
    (
        "groups",
        "Groups (Table 6)",
        "A group is a base string with its k selectors; it is solved when 80% of them are. Dotted: "
        "the share that would be solved if the items of a group were learned independently.",
    ),
    (
        "heads",
        "Heads (appendix I)",
        "Rise of the candidate loss when a head puts out nothing, at half the waiting time, at it, "
        "and at the run's end.",
    ),
    (
        "attention",
        "Attention to the selector (appendix I)",
        "From the positions that predict the answer, averaged. A head that looks at z need not use "
        "it.",
    ),
    (
        "curvature",
        "Curvature (appendix J)",
        "Extreme eigenvalues of the Hessian of the training loss on two disjoint samples, a mark "
        "for each. Hollow: it may be 0, by its errors or by how the samples differ.",
    ),
    (
        "displacement",
        "Trajectories (Figure 3b)",
        "Cosine of consecutive displacements of the weights, beside that of a random walk under "
        "AdamW, whose momentum alone correlates them. Grey line: every batch drawn anew. Lower "
        "edge of the band: each epoch shows every example once (permuted epochs), so that random "
        "gradients would cancel over an epoch and the weights turn back. The truth lies between, "
        "and only a cosine above the band shows direction.",
    ),
    (
        "gradient_noise",
        "Gradient noise against curvature (section 6)",
        "The experiment that the paper proposes: how much of the variance of mini-batch gradients "
        "lies along the Hessian's extreme eigenvectors, against noise that has no direction.",
    ),
    (
        "threshold_exponent",
        "Exponent by threshold (appendix D)",
        "The exponent of the waiting time when it is read off at other fractions of log k.",
    ),
)


MAIN_FIGURES = ("waiting_time", "anatomy", "cascade", "groups")
"""Those that stand at the beginning."""


def report(
    table: pd.DataFrame,
    scaling: dict,
    effects: dict,
    claims: dict,
    sweeps: dict[str, pd.DataFrame],
    mechanism: dict[str, pd.DataFrame],
    summary: dict,
    scale: float,
    plots: str,
    drawn: list[str],
) -> str:
    """Return the report.

    Args:
        table: the table of runs.
        scaling: the scaling metrics.
        effects: the metrics of the other experiments.
        claims: the judged claims by name.
        sweeps: of `mbc.runs.all_sweeps`.
        mechanism: tables of `mbc.mechanism` by name.
        summary: of `mbc.summary.summarise`.
        scale: factor on every n_b.
        plots: folder of the figures, relative to the report.
        drawn: names of the figures in it.
    """
    parts = [
        "# Marginals before conditionals: what the runs say",
        _opening(table, scaling, summary, scale),
        _verdicts(claims),
        "## The paper's claims",
        _claims(claims),
        *_figures(MAIN_FIGURES, plots, drawn),
        "## Where our numbers differ",
        _differences(claims, table, scaling),
        "## Fits",
        _fits(scaling),
        "## Gradient noise",
        *(_noise_table(sweeps[name], column) for name, column in NOISE_SWEEPS.items()),
        "## Forward, backward, transfer",
        _direction_table(effects),
        "## Inside the followed runs",
        mechanism_lines(mechanism).to_markdown(index=False),
        *_figures([name for name, _, _ in FIGURES if name not in MAIN_FIGURES], plots, drawn),
        "## Runs",
        "Moments in steps. `>` marks a censored moment: not reached by the last step.",
        run_lines(table).to_markdown(index=False),
    ]
    return "\n\n".join(parts) + "\n"


def run_lines(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of runs as short texts for people, a row a run."""
    rows = []
    for _, run in table.iterrows():
        plateau = run["plateau_ratio"]
        rows.append(
            {
                "run": run["run"],
                "k": run["k"],
                "n_b": run["n_b"],
                "D": run["dataset_size"],
                "τ": moment_text(run, "tau"),
                "onset": moment_text(run, "onset"),
                "loss onset": moment_text(run, "loss_onset"),
                "plateau / log k": "" if pd.isna(plateau) else f"{plateau:.3f}",
                "ended": f"{run['run_status'].replace('_', ' ')} at {run['last_step']}",
            }
        )
    return pd.DataFrame(rows)


def _opening(table: pd.DataFrame, scaling: dict, summary: dict, scale: float) -> str:
    runs = summary["runs"]
    lines = [
        f"{runs['total']} runs at scale {scale:g} (n_b of every condition times {scale:g}), "
        f"{table['seed'].nunique()} seed{'s' if table['seed'].nunique() > 1 else ''}: "
        f"{runs['observed']} passed their transition, {runs['censored']} did not within their "
        f"step budget, {runs['diverged']} diverged."
    ]
    if scale != 1:
        lines.append(
            "The paper's numbers are for scale 1; at another scale sizes may differ for that alone."
        )
    law = scaling["dataset_size"]
    if "bootstrap_interval" in law:
        low, high = law["bootstrap_interval"]
        lines.append(
            f"The waiting time grows as D to the power {law['exponent']:.2f} "
            f"[{low:.2f}, {high:.2f}] (paper: 1.19 [1.14, 1.31])."
        )
    plateau = summary["plateau"]
    if plateau["ratio_mean"] is not None:
        lines.append(
            f"On the plateau the candidate loss is {plateau['ratio_mean']:.2f} log k on average, "
            f"while the probability on the fibre's first characters is "
            f"{plateau['fibre_mass_over_chance']:.2f} times chance."
        )
    return " ".join(lines)


def _verdicts(claims: dict) -> str:
    """Return one sentence for each verdict that some claim has."""
    named = {
        verdict: [name.replace("_", " ") for name, c in claims.items() if c["verdict"] == verdict]
        for verdict in VERDICTS
    }
    told = [f"**{v}** ({len(n)}): {', '.join(n)}" for v, n in named.items() if n]
    return f"Of {len(claims)} claims of the paper: {'; '.join(told)}."


def _figures(names: Sequence[str], plots: str, drawn: list[str]) -> list[str]:
    return [
        f"## {title}\n\n{text}\n\n![{title}]({plots}/{name}.png)\n\n"
        f"Numbers: [{name}.csv]({plots}/{name}.csv)"
        for name, title, text in FIGURES
        if name in names and name in drawn
    ]


def _differences(claims: dict, table: pd.DataFrame, scaling: dict) -> str:
    differ, varied = differences(claims), ruled_out(table, scaling)
    return "\n\n".join(
        [
            "Claims with a number that ours does not confirm:",
            differ.to_markdown(index=False),
            "How far two of our own numbers move with what could explain a difference; what moves "
            "them by less than the difference is ruled out as its reason, and nothing is where no "
            "such run is in the record:",
            varied.to_markdown(index=False),
        ]
    )


def _claims(claims: dict) -> str:
    rows = [
        {
            "section": claim["section"],
            "claim": claim["claim"].replace("|", "\\|"),
            "ours": _measured_text(claim["ours"]),
            "runs": claim["ours"]["n_runs"] or "",
            "verdict": f"**{claim['verdict']}**",
        }
        for claim in claims.values()
    ]
    rules = "\n".join(f"- {claim['claim']}: {claim['rule']}." for claim in claims.values())
    return (
        pd.DataFrame(rows).to_markdown(index=False)
        + "\n\nEvery verdict is computed from the numbers by its rule; a claim about the marginal "
        "is judged twice.\n\n<details><summary>The rules</summary>\n\n" + rules + "\n\n</details>"
    )


def _measured_text(ours: dict) -> str:
    if "value" not in ours:
        return ours["note"]
    text = f"{BOUNDS[ours.get('bound')]}{ours['value']:.3g}"
    if "low" in ours:
        text += f" [{ours['low']:.3g}, {ours['high']:.3g}]"
    return f"{text} ({ours['note']})" if ours["note"] else text


def _noise_table(runs: pd.DataFrame, column: str) -> str:
    """Return a sweep as the paper's Table 1: times in steps and examples, relative to the least."""
    groups = runs.groupby(column)
    complete = groups["tau_status"].agg(lambda status: (status == "observed").all())
    rows = {"runs": groups.size()}
    for moment, unit in (("tau", "steps"), ("tau_examples", "examples")):
        means = np.exp(
            groups[moment].agg(lambda times: np.log(times.astype(float).clip(lower=1)).mean())
        )
        means = means[complete]
        rows[f"τ ({unit})"] = means.map("{:.0f}".format)
        rows[f"ratio ({unit})"] = (means / means.min()).map("{:.2f}".format)
    table = pd.DataFrame(rows).astype(object)
    table.loc[~complete, ["τ (steps)", "τ (examples)"]] = "no transition in a run"
    return table.fillna("").rename_axis(column).reset_index().to_markdown(index=False)


def _direction_table(effects: dict) -> str:
    names = {
        "direction_by_tau": "forward / backward, candidate loss",
        "direction_by_character_tau": "forward / backward, loss per character",
        "transfer_by_tau": "scratch / after forward, candidate loss",
        "transfer_by_character_tau": "scratch / after forward, loss per character",
    }
    rows: dict[tuple[int, str], dict] = {}
    for key, name in names.items():
        for ratio in effects[key]:
            k, condition = ratio["k"], ratio["condition"]
            row = rows.setdefault(
                (k, condition),
                {"condition": condition, "k": k, **dict.fromkeys(names.values(), "")},
            )
            row[name] = f"{ratio['value']:.2f}" if "value" in ratio else "an end was censored"
    ordered = [rows[place] for place in sorted(rows)]
    return "Ratios of waiting times in steps.\n\n" + pd.DataFrame(ordered).to_markdown(index=False)


def _fits(scaling: dict) -> str:
    rows = [
        _fit_row("τ in D, n_b fixed", scaling["dataset_size"]),
        *(_fit_row(f"τ in k, D = {size}", fit) for size, fit in scaling["fixed_size"].items()),
        *(
            _fit_row(f"τ in D at threshold {threshold}", fit)
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
        parts.append(f"By AICc the best law is: {law['laws']['best']}{beside}.")
    parts += [part["statement"] for part in (censored, mixed, law["laws"]) if part["statement"]]
    return " ".join(parts)


def _fit_row(name: str, fit: dict) -> dict:
    test = fit.get("equivalence")
    return {
        "fit": name,
        "exponent": _number(fit.get("exponent")),
        "bootstrap 95%": _interval(fit.get("bootstrap_interval")),
        "HC3 95%": _interval(fit.get("hc3_interval")),
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
