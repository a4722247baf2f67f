"""Reading the examples of a run."""

import pandas as pd

from mbc.conditions import Condition
from mbc.task import Sequences, from_strings, sequences


def read_examples(dataset_file: str, condition: Condition) -> Sequences:
    """Return a run's examples from its table of strings."""
    table = pd.read_csv(dataset_file, dtype=str, keep_default_na=False)
    rows = from_strings(list(table.itertuples(index=False, name=None)))
    return sequences(rows, condition.direction)
