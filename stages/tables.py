"""Reading a folder of tables."""

from pathlib import Path

import pandas as pd


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Return the CSV tables of a folder by name."""
    return {path.stem: pd.read_csv(path) for path in sorted(folder.glob("*.csv"))}
