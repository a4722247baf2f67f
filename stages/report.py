"""Write the report and the few numbers that tell one pipeline from another."""

import sys
from pathlib import Path

from mbc.report import report
from mbc.runs import read_run_table
from mbc.summary import summarise
from stages.files import read_json, read_yaml, refusing, write_json, write_text


def main(
    params_file: str,
    table_file: str,
    scaling_file: str,
    effects_file: str,
    claims_file: str,
    plots_folder: str,
    summary_file: str,
    report_file: str,
) -> None:
    """Write the summary as JSON and the report as Markdown."""
    table = read_run_table(table_file)
    scaling = read_json(Path(scaling_file))
    effects, claims = (read_json(Path(file)) for file in (effects_file, claims_file))
    summary = summarise(table, scaling, effects, claims)
    write_json(Path(summary_file), summary)
    scale = read_yaml(Path(params_file))["scale"]
    text = report(table, scaling, effects, claims, summary, scale, plots_folder)
    write_text(Path(report_file), text)


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
