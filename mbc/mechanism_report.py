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
    noise = tables["noise_shares"]
    batch_size = noise.groupby("run")["batch_size"].max().min()  # of those that all runs have
    for run in tables["groups"]["run"].unique():
        own = {name: table[table["run"] == run] for name, table in tables.items()}
        columns[run] = {
            **_groups(own["groups"], own["group_transitions"].iloc[0]),
            **_heads(own["leading_heads"]),
            **_curvature(own["curvature"]),
            **_cosines(own["displacement"]),
            **_noise(own["noise_shares"], batch_size),
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


def _noise(table: pd.DataFrame, size: int) -> dict[str, str]:
    return {
        f"noise along {_direction(share['direction'])} / isotropic, batch {size}": (
            f"{share['share_over_isotropic']:.3g} [{share['low']:.3g}, {share['high']:.3g}]"
        )
        for _, share in table[table["batch_size"] == size].iterrows()
    }


def _direction(name: str) -> str:
    """Return what a direction of `mbc.gradient_noise.NoiseShare` is, in words."""
    kind, _, rank = name.partition(" ")
    which = {"": "", "1": "", "2": "second ", "3": "third "}.get(rank, f"{rank}th ")
    return f"the direction of the {which}{kind} eigenvalue"
