"""What the README says on merging two branches that both trained runs."""

import yaml

from tests.conftest import ROOT
from tests.test_pipeline import call, commit


def lock(*seeds):
    """Return a lock as DVC writes it, with a training and an analysis for each seed."""
    runs = [f"{stage}@base-{seed}" for seed in seeds for stage in ("train", "groups")]
    stages = {name: {"cmd": f"python {name}", "outs": [{"path": name}]} for name in runs}
    table = {"cmd": "python", "deps": [{"path": "data/runs", "size": len(runs)}]}
    values = {"schema": "2.0", "stages": {**stages, "transitions": table}}
    return yaml.safe_dump(values, sort_keys=False)


def write_lock(folder, *seeds):
    (folder / "dvc.lock").write_text(lock(*seeds))
    commit(folder)


def test_the_lock_keeps_the_runs_of_both_sides(tmp_path):
    _, _, after = (ROOT / "README.md").read_text().partition("  git checkout --ours")
    commands = f"git checkout --ours{after.partition('dvc repro')[0]}"
    for name in ("data/runs", "metrics", "plots"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "kept").touch()
    (tmp_path / "report.md").touch()
    call(tmp_path, "git", "init", "-q")
    write_lock(tmp_path, 0)
    call(tmp_path, "git", "branch", "other")
    write_lock(tmp_path, 0, 1)
    call(tmp_path, "git", "checkout", "-q", "-b", "own")
    call(tmp_path, "git", "checkout", "-q", "other")
    write_lock(tmp_path, 0, 2)
    call(tmp_path, "git", "checkout", "-q", "own")
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    merged = call(tmp_path, "git", *who, "merge", "other", check=False)
    assert "CONFLICT (content): Merge conflict in dvc.lock" in merged.stdout
    call(tmp_path, "sh", "-e", "-c", commands)
    kept = yaml.safe_load((tmp_path / "dvc.lock").read_text())
    ours, all_runs = (yaml.safe_load(lock(*seeds))["stages"] for seeds in ([0, 1], [0, 1, 2]))
    assert kept["stages"] == {**all_runs, "transitions": ours["transitions"]}
