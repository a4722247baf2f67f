"""The report: tables and figures put together as Markdown."""

from collections.abc import Sequence

import pandas as pd

from mbc.claims import VERDICTS, number_text
from mbc.differences import BOUNDS, differences, ruled_out
from mbc.direction_claims import ratio_text
from mbc.fits_report import fit_table, noise_tables
from mbc.mechanism_report import mechanism_lines, noise_lines
from mbc.paper_times import PaperTimes, beside_paper
from mbc.report_texts import FIGURES, MAIN_FIGURES, TERMS
from mbc.runs_report import not_looked_into, run_lines


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
    paper_times: PaperTimes,
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
        paper_times: the paper's waiting times, in steps, for scale 1.
    """
    times = paper_times if scale == 1 else {}
    parts = [
        "# Marginals before conditionals: what the runs say",
        _opening(table, scaling, claims, summary, scale, sweeps["dataset_size"], times),
        _verdicts(claims),
        TERMS,
        "## The paper's claims",
        _claims(claims),
        *_figures(MAIN_FIGURES, plots, drawn),
        "## Where our numbers differ",
        _differences(claims, table, sweeps, scaling),
        "## Fits",
        fit_table(scaling),
        "## Gradient noise",
        *noise_tables(sweeps, effects),
        "## Forward, backward, transfer",
        _direction_table(effects),
        "## Inside the followed runs",
        "`plateau` is the checkpoint nearest to τ/2, `transition` that nearest to τ. By τ/2 z may "
        "have begun to matter for the whole answer: its onset is in the table of runs. After ± "
        "stands the numerical error of an eigenvalue on its sample; two samples show theirs.",
        mechanism_lines(mechanism).to_markdown(index=False),
        *_noise(noise_lines(mechanism)),
        *not_looked_into(table),
        *_figures([name for name, _, _ in FIGURES if name not in MAIN_FIGURES], plots, drawn),
        "## Runs",
        "Moments in steps. `>` marks a censored moment: not seen, and known not to have come by "
        "that step, mostly the run's last.",
        run_lines(table, times).to_markdown(index=False),
    ]
    return "\n\n".join(parts) + "\n"


def _noise(lines: pd.DataFrame) -> list[str]:
    if lines.empty:
        return []
    return [
        "Gradient noise on the plateau along the Hessian's eigenvectors (intervals: as if a "
        "batch's gradient were normal along them):",
        lines.to_markdown(index=False),
    ]


def _opening(
    table: pd.DataFrame,
    scaling: dict,
    claims: dict,
    summary: dict,
    scale: float,
    by_size: pd.DataFrame,
    times: PaperTimes,
) -> str:
    runs = summary["runs"]
    undefined = runs["total"] - runs["observed"] - runs["censored"] - runs["diverged"]
    lines = [
        f"{runs['total']} runs at scale {scale:g} (n_b of every condition times {scale:g}), "
        f"{table['seed'].nunique()} seed{'s' if table['seed'].nunique() > 1 else ''}: "
        f"{runs['observed']} passed their transition, {runs['censored']} did not within their "
        f"step budget, {runs['diverged']} diverged"
        + (f", {undefined} (k = 1) have none." if undefined else ".")
    ]
    if scale != 1:
        lines.append(
            "Step budgets and warm-up are scaled, too. The paper's numbers are for scale 1; at "
            "another scale sizes may differ for that alone."
        )
    statement = scaling["dataset_size"]["statement"]
    lines += _exponent(summary["dataset_size"], statement, claims.get("exponent", {}))
    plateau = summary["plateau"]
    if plateau["ratio_mean"] is not None:
        lines.append(
            f"Early on the plateau the candidate loss of the dataset-size sweep is "
            f"{plateau['ratio_mean']:.2f} log k on average, while the probability on the fibre's "
            f"first characters is {plateau['fibre_mass_over_chance']:.2f} times chance; later the "
            f"loss climbs to {plateau['peak_ratio_mean']:.2f} log k."
        )
    first = summary["first_character_at_tau_base"]
    if first is not None:
        lines.append(
            f"At τ the loss of the answer's first character is still {first:.2f} log 36 in the "
            "base condition"
            + (
                ": what falls first is the loss of the later ones, given it."
                if first > 0.9
                else "."
            )
        )
    return " ".join([*lines, *_gradual(by_size), *beside_paper(table, times)])


def _gradual(by_size: pd.DataFrame) -> list[str]:
    """Return a sentence on how long the fall takes at the smallest and at the largest D."""
    seen = by_size[by_size["tau_status"] == "observed"]
    share = ((seen["tau"] - seen["loss_onset"]) / seen["tau"]).groupby(seen["dataset_size"]).mean()
    if len(share) < 2:
        return []
    (small, first), (large, last) = share.iloc[[0, -1]].items()
    return [
        f"The fall from 0.9 to 0.5 log k takes {first:.0%} of τ at D = {small:,} and {last:.0%} at "
        f"D = {large:,}."
    ]


def _exponent(summary: dict, statement: str, claim: dict) -> list[str]:
    """Return a sentence on the exponent, of the fit that counts the runs without a transition.

    Args:
        summary: of the dataset-size sweep, from `mbc.summary.summarise`.
        statement: what the fit cannot tell.
        claim: the judged claim about the exponent.
    """
    exponent, low, without = (summary[k] for k in ("exponent", "low", "runs_without_transition"))
    if exponent is None and without:
        return [f"The exponent of D is not known: {statement}"]
    if exponent is None or (low is None and not without):
        return []
    interval = "" if low is None else f" [{low:.2f}, {summary['high']:.2f}]"
    bounds = f", with the {without} runs without a transition as bounds" if without else ""
    beside = f" The paper: {claim['paper']:.2f}." if "paper" in claim else ""
    return [f"The waiting time grows as D to the power {exponent:.2f}{interval}{bounds}.{beside}"]


def _verdicts(claims: dict) -> str:
    """Return one sentence for each verdict that some claim has, the paper's own claims first."""
    parts = []
    for added, whose in ((False, "claims of the paper"), (True, "other readings and tests")):
        chosen = {name: c["verdict"] for name, c in claims.items() if c["added"] == added}
        named = {
            verdict: [_title(name) for name, given in chosen.items() if given == verdict]
            for verdict in VERDICTS
        }
        told = [f"**{v}** ({len(n)}): {', '.join(n)}" for v, n in named.items() if n]
        if told:
            parts.append(f"Of {len(chosen)} {whose}: {'; '.join(told)}.")
    return "\n\n".join(parts)


def _title(name: str) -> str:
    """Return the key of a claim as words, such as ``lead fraction (whole answer)``."""
    of = {"_string": " (whole answer)", "_by_character": " (by character)"}
    of["_character"] = " (first character)"
    for ending, words in of.items():
        if name.endswith(ending):
            return _title(name.removesuffix(ending)) + words
    return name.replace("_", " ").replace("z gap", "z-gap").replace("b used", "B used")


def _figures(names: Sequence[str], plots: str, drawn: list[str]) -> list[str]:
    return [
        f"## {title}\n\n{text}\n\n![{title}]({plots}/{name}.png)\n\n"
        f"Numbers: [{name}.csv]({plots}/{name}.csv)"
        for name, title, text in FIGURES
        if name in names and name in drawn
    ]


def _differences(
    claims: dict, table: pd.DataFrame, sweeps: dict[str, pd.DataFrame], scaling: dict
) -> str:
    differ, varied = differences(claims), ruled_out(table, sweeps, scaling)
    seeds = ", or one of seeds, of which there is one" if table["seed"].nunique() == 1 else ""
    return "\n\n".join(
        [
            "Claims with a number that ours does not confirm; the ratio is to the paper's number, "
            "or to the nearer end of its range:",
            differ.to_markdown(index=False),
            "What we varied of that which the paper leaves open, and how far three of our numbers "
            f"moved. What none of them accounts for has a reason that was not varied{seeds}. For "
            "ratios and for claims on what goes on inside a run the record has no such variation:",
            varied.to_markdown(index=False),
        ]
    )


def _claims(claims: dict) -> str:
    rows = [
        {
            "section": claim["section"] + (", added" if claim["added"] else ""),
            "claim": claim["claim"].replace("|", "\\|"),
            "ours": _measured_text(claim["ours"]),
            "runs": claim["ours"]["n_runs"] or "",
            "verdict": f"**{claim['verdict']}**",
        }
        for claim in claims.values()
    ]
    rules = "\n".join(
        f"- {claim['claim']}: {claim['rule']}. {claim['remark']}".rstrip()
        for claim in claims.values()
    )
    return (
        pd.DataFrame(rows).to_markdown(index=False)
        + "\n\nEvery verdict is computed from the numbers by its rule. What is *added* is not the "
        "paper's own claim, but another reading of one, or a test that it proposes. The paper's "
        "are the statements of its abstract, sections 2 to 5 and appendices that these runs can "
        "test.\n\n"
        "<details><summary>The rules</summary>\n\n" + rules + "\n\n</details>"
    )


def _measured_text(ours: dict) -> str:
    if "value" not in ours:
        return ours["note"]
    say, of = ("{:.0%}".format, " of runs") if ours["is_share"] else (number_text, "")
    text = f"{BOUNDS[ours.get('bound')]}{say(ours['value'])}{of}"
    if "low" in ours:
        text += f" [{say(ours['low'])}, {say(ours['high'])}]"
    return f"{text} ({ours['note']})" if ours["note"] else text


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
            row[name] = ratio_text(ratio)
    ordered = [rows[place] for place in sorted(rows)]
    return "Ratios of waiting times in steps.\n\n" + pd.DataFrame(ordered).to_markdown(index=False)
