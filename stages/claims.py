"""Judge every claim of the paper from the metrics."""

import sys
from dataclasses import asdict
from pathlib import Path

from mbc.conditions import parse
from mbc.judgement import judge_all
from mbc.runs import all_sweeps, read_run_table
from mbc.settings import Sweeps
from stages.files import read_json, read_yaml, refusing, write_json
from stages.tables import read_tables


def main(
    params_file: str,
    paper_file: str,
    table_file: str,
    scaling_file: str,
    effects_file: str,
    mechanism_folder: str,
    claims_file: str,
) -> None:
    """Write the claims with their verdicts."""
    params, table = read_yaml(Path(params_file)), read_run_table(table_file)
    scale = params["scale"]
    claims = judge_all(
        read_yaml(Path(paper_file)),
        table,
        all_sweeps(table, parse(Sweeps, params["sweeps"], "sweeps"), scale),
        scale,
        read_json(Path(scaling_file)),
        read_json(Path(effects_file)),
        read_tables(Path(mechanism_folder)),
    )
    write_json(Path(claims_file), {claim.name: asdict(claim) for claim in claims})


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
