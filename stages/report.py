"""Write the report and the few numbers that tell one pipeline from another."""

import sys
from pathlib import Path

from mbc.conditions import parse
from mbc.report import report
from mbc.runs import all_sweeps, read_run_table
from mbc.settings import Sweeps
from mbc.summary import summarise
from stages.files import read_json, read_yaml, refusing, write_json, write_text
from stages.tables import read_tables


def main(
    params_file: str,
    table_file: str,
    scaling_file: str,
    effects_file: str,
    claims_file: str,
    mechanism_folder: str,
    plots_folder: str,
    paper_times_file: str,
    summary_file: str,
    report_file: str,
) -> None:
    """Write the summary as JSON and the report as Markdown."""
    table = read_run_table(table_file)
    scaling = read_json(Path(scaling_file))
    effects, claims = (read_json(Path(file)) for file in (effects_file, claims_file))
    params = read_yaml(Path(params_file))
    settings = parse(Sweeps, params["sweeps"], "sweeps")
    sweeps = all_sweeps(table, settings, params["scale"])
    summary = summarise(table, sweeps["dataset_size"], scaling, claims)
    write_json(Path(summary_file), summary)
    drawn = [path.stem for path in Path(plots_folder).glob("*.png")]
    mechanism = read_tables(Path(mechanism_folder))
    arguments = (scaling, effects, claims, sweeps, mechanism, summary, params["scale"])
    paper_times = read_yaml(Path(paper_times_file))
    text = report(table, *arguments, plots_folder, drawn, paper_times)
    write_text(Path(report_file), text)


if __name__ == "__main__":
    with refusing():
        main(*sys.argv[1:])
