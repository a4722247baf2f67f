"""The committed results belong to the committed code and parameters."""

from tests.conftest import ROOT
from tests.test_pipeline import call

RESULTS = ("data/runs", "metrics", "plots", "report.md", "dvc.lock")
MOST_BYTES = 30_000_000


def test_results_are_those_of_the_code_as_it_stands():
    done = call(ROOT, "dvc", "repro", "--dry", "--allow-missing", check=False)
    stale = [line for line in done.stdout.splitlines() if line.startswith("Running stage")]
    assert not stale, "The results are older than code or parameters; 'make repro' makes them anew."
    assert done.returncode == 0, done.stderr


def test_results_stay_small_enough_for_git():
    files = [p for n in RESULTS for p in [ROOT / n, *(ROOT / n).rglob("*")] if p.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
