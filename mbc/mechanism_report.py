"""What was found inside the followed runs, as short texts for people."""

import pandas as pd

from mbc.checkpoints import PHASES, at_fraction

GROUP_FRACTIONS = (0.5, 1.0, 1.5)


def mechanism_lines(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a column for each followed run and a row for each thing measured, as text.

    Args:
        tables: of `mbc.mechanism` by name.
    """
    columns = {}
    for run in tables["groups"]["run"].unique():
        own = {name: table[table["run"] == run] for name, table in tables.items()}
        columns[run] = {
            **_groups(own["groups"], own["group_transitions"].iloc[0]),
            **_heads(own["leading_heads"]),
            **_curvature(own["curvature"]),
            **_cosines(own["displacement"]),
        }
    return pd.DataFrame(columns).fillna("").rename_axis("measured").reset_index()


def _groups(curve: pd.DataFrame, transition: pd.Series) -> dict[str, str]:
    rows = {}
    for fraction in GROUP_FRACTIONS:
        for _, point in at_fraction(curve, fraction).iterrows():
            rows[f"groups solved at {fraction:g} τ"] = (
                f"{point['share_solved']:.0%} (mean accuracy {point['mean_accuracy']:.2f}; "
                f"{point['independent_share_solved']:.0%} if items were independent)"
            )
    if pd.notna(transition["width"]):
        low, high = transition["independent_low"], transition["independent_high"]
        null = f"{low:.2f} to {'beyond' if pd.isna(high) else f'{high:.2f}'}"
        rows["width of the groups' transition / mean time until solved"] = (
            f"{transition['width_over_mean_time']:.2f} (independent, memoryless: {null})"
        )
    else:
        rows["width of the groups' transition / mean time until solved"] = transition["statement"]
    if pd.notna(transition["heterogeneity_halfway"]):
        rows["variance between groups / that of alike groups, halfway"] = (
            f"{transition['heterogeneity_halfway']:.2f} (alike: "
            f"{transition['heterogeneity_low']:.2f} to {transition['heterogeneity_high']:.2f})"
        )
    return rows


def _heads(leading: pd.DataFrame) -> dict[str, str]:
    rows = {}
    for _, found in leading.iterrows():
        if found["verdict"] == "leader":
            who = f"L{int(found['layer'])}H{int(found['head'])}"
        else:
            who = {"tie": f"tie of {found['tied']}", "none": "none"}[found["verdict"]]
        text = f"{who}: {found['rise']:.2f}"
        if pd.notna(found["second_rise"]):
            text += f", next {found['second_rise']:.2f} nats"
        rows[f"leading head, {found['ablation']} ablation, {found['phase']}"] = text
    return rows


def _curvature(table: pd.DataFrame) -> dict[str, str]:
    rows = {}
    for phase in PHASES:
        of_phase = table[table["phase"] == phase]
        if of_phase.empty:
            continue
        for end in ("largest", "smallest"):
            values = ", ".join(
                f"{sample[end]:.3g} ± {max(sample[f'{end}_residual'], sample['rounding']):.1g}"
                + ("" if sample[f"{end}_converged"] else " (not converged)")
                for _, sample in of_phase.iterrows()
            )
            rows[f"{end} eigenvalue, {phase}, two samples"] = values
        smallest = f"smallest eigenvalue, {phase}, two samples"
        transferred = of_phase["transferred"].iloc[0]
        rows[smallest] += f"; along the first one's direction the second sample {transferred:.3g}"
    return rows


def _cosines(table: pd.DataFrame) -> dict[str, str]:
    whole = table[table["component"] == "whole"]
    rows = {}
    for phase in PHASES:
        of_phase = whole[whole["phase"] == phase]
        if not of_phase.empty:
            cosine, walk = of_phase["cosine"].mean(), of_phase["fresh"].mean()
            rows[f"cosine of displacements, {phase}"] = f"{cosine:.2f} (random walk {walk:.2f})"
    return rows


def noise_lines(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a row for each run whose gradient noise was measured, as text.

    Shares are those at the largest batch size that all of these runs have.

    Args:
        tables: of `mbc.mechanism` by name.
    """
    shares, sizes = tables["noise_shares"], tables["noise_sizes"]
    batch_size = shares.groupby("run")["batch_size"].max().min()
    rows = []
    for run, of_run in shares[shares["batch_size"] == batch_size].groupby("run", sort=False):
        size = sizes[(sizes["run"] == run) & (sizes["batch_size"] == batch_size)].iloc[0]
        along = of_run.set_index("direction")
        top, bottom = along.loc["largest 1"], along.loc["smallest"]
        upper = along[along.index.str.startswith("largest")]["share"]
        rows.append(
            {
                "run": run,
                "lr": f"{size['lr']:g}",
                f"trace of the noise, batch {batch_size}": f"{size['trace']:.3g}",
                "largest eigenvalue": f"{top['eigenvalue']:.3g}",
                "smallest": f"{bottom['eigenvalue']:.3g}",
                "noise along the largest / isotropic": _share(top),
                "along the smallest / isotropic": _share(bottom),
                f"along the {len(upper)} largest, of all": f"{upper.sum():.1%}",
            }
        )
    return pd.DataFrame(rows)


def _share(along: pd.Series) -> str:
    return f"{along['share_over_isotropic']:.3g} [{along['low']:.3g}, {along['high']:.3g}]"
