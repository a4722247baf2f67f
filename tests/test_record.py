"""The committed results belong to the committed code and parameters."""

from scripts.prune import left_overs
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


def test_results_of_runs_that_are_named_no_more_are_gone(params):
    tracked = call(ROOT, "git", "ls-files").stdout.splitlines()
    left = [str(path.relative_to(ROOT)) for path in left_overs(ROOT, params)]
    committed = [
        name for name in left if any(f"{file}/".startswith(f"{name}/") for file in tracked)
    ]
    assert not committed, "'make prune' removes them."
