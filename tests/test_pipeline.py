"""The pipeline on the real DVC: what depends on what, and what reruns after which change."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

import scripts.repro
from scripts import quick
from stages import conditions, datasets, initial_weights
from stages.files import read_json, read_yaml, write_yaml

ROOT = Path(__file__).parents[1]
STAGES = read_yaml(ROOT / "dvc.yaml")["stages"]
RERUNS = read_yaml(Path(__file__).parent / "reruns.yaml")
SOURCES = (*quick.SOURCES, ".gitignore")
SMALL = {
    **{"scale": 1.0, "seeds": [0], "k": 4, "n_b": 20, "batch_size": 16, "max_steps": 40},
    **{"n_layers": 1, "d_model": 16, "n_heads": 2, "d_mlp": 32},
    "conditions": {
        "base": None,
        "k03": {"k": 3},
        "k05": {"k": 5},
        "own": {"lr": 0.02, "batch_size": 8},
        "forward_base": {"direction": "forward", "label_noise": 0.0},
        "linear": {"network": "linear"},
        "diverging": {"lr": 1e30},
    },
    "transfers": ["base"],
}

SMALL_MECHANISM = {
    **{"conditions": ["base"], "gradient_noise": ["base"], "checkpoint_every": 4},
    **{"displacement_steps": 8, "groups": 10, "ablation_examples": 40, "curvature_examples": 40},
    **{"curvature_products": 20, "noise_batches": 8, "noise_batch_sizes": [4, 16]},
}

RESOLVED = ("data/maps", "data/networks", "data/conditions")

FIRST_OUTPUTS = [*RESOLVED, "data/datasets", "data/initial_weights"]

RUNS = [*(f"{name}-0" for name in SMALL["conditions"]), "transfer_base-0"]


def python_files(stage):
    return {dep for dep in STAGES[stage]["deps"] if str(dep).endswith(".py")}


def imported_files(path, seen=()):
    """Return the project's files that a file reaches by import, itself and packages included."""
    found = {path, f"{path.split('/')[0]}/__init__.py"}
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            file = name.replace(".", "/") + ".py"
            if (ROOT / file).exists() and file not in found and file not in seen:
                found |= imported_files(file, {*seen, *found})
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_exactly_the_code_that_it_imports(stage):
    command = STAGES[stage]["cmd"].split()
    script = command[command.index("-m") + 1].replace(".", "/") + ".py"
    assert python_files(stage) == imported_files(script)


def test_the_library_knows_no_stage_no_dvc_and_no_command_line():
    for path in (ROOT / "mbc").glob("*.py"):
        text = path.read_text()
        for word in ("import dvc", "from stages", "params.yaml", "sys.argv", "argparse"):
            assert word not in text or word == "params.yaml", (path, word)


def test_the_first_stage_checks_every_parameter():
    assert STAGES["conditions"]["params"] == [{"params.yaml": None}]


def test_no_file_is_long():
    for folder in ("mbc", "stages", "scripts", "tests"):
        for path in (ROOT / folder).glob("*.py"):
            assert len(path.read_text().splitlines()) <= 400, path


def make_workspace(folder, **changes):
    folder.mkdir(exist_ok=True)
    for source in SOURCES:
        target = folder / source
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(ROOT / source, target)
    values = {**read_yaml(ROOT / "params.yaml"), **SMALL, **changes}
    values["sweeps"]["fixed_size"]["dataset_sizes"] = [80]
    values["mechanism"] |= SMALL_MECHANISM
    write_yaml(folder / "params.yaml", values)
    call(folder, "git", "init", "-q")
    commit(folder)
    return folder


def commit(folder):
    who = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    call(folder, "git", "add", "-A")
    call(folder, "git", *who, "commit", "-q", "--allow-empty", "-m", "state")


def call(folder, *command, check=True):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "DVC_NO_ANALYTICS": "true"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if check:
        assert result.returncode == 0, result.stdout + result.stderr
    return result


def results(folder):
    names = (*RESOLVED, "data/runs", "metrics", "plots", "report.md", "dvc.lock")
    files = [p for n in names for p in [folder / n, *(folder / n).rglob("*")] if p.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small pipeline, run to its end."""
    folder = make_workspace(tmp_path_factory.mktemp("pipeline") / "workspace")
    call(folder, sys.executable, "-m", "scripts.repro", "--jobs", "2")
    return folder


def test_it_ends_with_a_report_that_has_every_figure(finished):
    text = (finished / "report.md").read_text()
    figures = [line.split("](")[1].rstrip(")") for line in text.splitlines() if line[:2] == "!["]
    assert len(figures) == len(list((finished / "plots").glob("*.png"))) >= 6
    assert "plots/structured.png" not in figures  # no condition has structured fibres
    assert all((finished / figure).stat().st_size > 1000 for figure in figures)
    assert all((finished / figure).with_suffix(".csv").exists() for figure in figures)


def test_outputs_are_strict_and_name_no_machine(finished):
    for name, content in results(finished).items():
        if name.endswith(".json"):
            json.loads(content, parse_constant=pytest.fail)
        if not name.endswith(".png"):
            assert str(finished).encode() not in content, name
            assert os.uname().nodename.encode() not in content, name
    table = pd.read_csv(finished / "metrics" / "runs.csv")
    assert table["run"].tolist() == sorted(RUNS)
    diverged = table["run"] == "diverging-0"
    assert set(table["tau_status"][~diverged]) <= {"observed", "censored"}


def test_a_run_that_diverged_is_recorded_and_the_others_go_on(finished):
    table = pd.read_csv(finished / "metrics" / "runs.csv").set_index("run")
    assert table.loc["diverging-0", ["run_status", "tau_status"]].tolist() == ["diverged"] * 2
    assert read_json(finished / "metrics" / "summary.json")["runs"]["diverged"] == 1
    assert "diverged at" in (finished / "report.md").read_text()


def test_eight_trainings_side_by_side_are_all_in_the_lock(finished):
    assert len(RUNS) == 8
    locked = yaml.safe_load((finished / "dvc.lock").read_text())["stages"]
    trained = {name for name in locked if name.startswith(("train@", "transfer@"))}
    assert trained == {*(f"train@{name}-0" for name in SMALL["conditions"]), "transfer@base-0"}


def test_nothing_changed_means_nothing_to_do(finished):
    assert "up to date" in call(finished, "dvc", "repro").stdout
    assert json.loads(call(finished, "dvc", "status", "--json").stdout) == {}


def test_commands_of_dvc_users_work(finished):
    shown = json.loads(call(finished, "dvc", "metrics", "show", "--json").stdout)
    values = shown[""]["data"]["metrics/summary.json"]["data"]
    written = read_json(finished / "metrics" / "summary.json")
    assert values == {name: value for name, value in written.items() if value != {}}
    call(finished, "dvc", "metrics", "diff", "--targets", "metrics/transitions.json")
    call(finished, "dvc", "plots", "show", "--out", "shown")
    assert (finished / "shown" / "index.html").exists()
    shutil.rmtree(finished / "shown")


def test_equal_runs_give_equal_bytes(finished, tmp_path):
    other = make_workspace(tmp_path / "other")
    call(other, "dvc", "repro", "train@base-0", "train@own-0")
    for run in ("base-0", "own-0"):
        for name in ("history.csv", "outcome.json"):
            path = Path("data", "runs", run, name)
            assert (finished / path).read_bytes() == (other / path).read_bytes()


def test_a_fresh_clone_is_up_to_date_without_training(finished, tmp_path):
    commit(finished)
    call(tmp_path, "git", "clone", "-q", str(finished), "clone")
    clone = tmp_path / "clone"
    assert not (clone / "data" / "datasets").exists()
    assert "up to date" in call(clone, "dvc", "repro", "--allow-missing").stdout
    reproduce = (sys.executable, "-m", "scripts.repro", "--jobs", "2")
    call(clone, *reproduce)
    assert not list((clone / "data/weights").glob("*-0"))
    assert results(clone) == results(finished)
    call(clone, "dvc", "repro", *scripts.repro.FIRST)
    what_if = ("-S", "transition.tau_fraction=0.4", "scaling", "effects")
    ran = call(clone, "dvc", "exp", "run", "--allow-missing", *what_if).stdout
    assert "Running stage 'transitions'" in ran
    assert "Running stage 'tra" not in ran.replace("'transitions'", "")
    call(clone, "git", "checkout", "-q", ".")
    params = read_yaml(clone / "params.yaml")
    params["mechanism"]["groups"] = 9
    write_yaml(clone / "params.yaml", params)
    call(clone, *reproduce)  # the groups of one run are looked at anew, so it is trained again
    assert [path.name for path in (clone / "data/weights").glob("*-0")] == ["base-0"]


@pytest.fixture
def restored(finished):
    """The finished pipeline, put back afterwards as it was."""
    kept = finished.parent / "kept"
    names = ["data", "metrics", "plots", "report.md", "params.yaml", "dvc.lock"]
    call(finished, "cp", "-a", "--parents", *names, str(kept.mkdir() or kept))
    yield finished
    for name in names:
        path = finished / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    call(kept, "cp", "-a", *names, str(finished))
    shutil.rmtree(kept)


def test_the_table_of_reruns_names_every_parameter(params):
    sections = {"transition", "scaling", "sweeps", "mechanism"}
    keys = {key for key in params if key not in sections} - {"conditions"}
    keys |= {f"{section}.{key}" for section in sections for key in params[section]}
    assert {name for name in RERUNS if not name.startswith("conditions")} == keys


def expand(stages):
    trainings = {f"train@{name}-0" for name in SMALL["conditions"]} | {"transfer@base-0"}
    groups = {
        "every training": trainings,
        "every analysis": {f"{analysis}@base-0" for analysis in scripts.repro.ANALYSES},
    }
    named = {*stages} - set(groups)
    return named.union(*(groups[group] for group in groups if group in stages))


def run_first_stages(folder):
    """Do what the stages before training do, without DVC, which takes seconds to start."""
    stages = {"conditions": conditions, "datasets": datasets, "initial_weights": initial_weights}
    for name in scripts.repro.FIRST:
        command = STAGES[name]["cmd"].split()
        stages[name].main(*(str(folder / path) for path in command[3:]))


def test_a_parameter_changes_the_stages_in_the_table_and_no_other(restored):
    """Change every parameter in turn; ask the real DVC which stages it calls changed."""
    from dvc.repo import Repo

    kept = restored.parent / "kept"
    wrong = {}
    for name, row in RERUNS.items():
        values = read_yaml(kept / "params.yaml")
        target = values
        *path, key = name.split(".")
        for part in path:
            target = target[part]
        target[key] = row["value"]
        write_yaml(restored / "params.yaml", values)
        if isinstance(row["stages"], str):
            with pytest.raises(ValueError, match=row["stages"]):
                run_first_stages(restored)
        else:
            run_first_stages(restored)
            with Repo(str(restored)) as repo:
                changed = {stage.rpartition(":")[2] for stage in repo.status()}
            changed -= set(scripts.repro.FIRST)
            if changed != expand(row["stages"]):
                wrong[name] = sorted(changed)
        for item in FIRST_OUTPUTS:
            shutil.rmtree(restored / item, ignore_errors=True)
            shutil.copytree(kept / item, restored / item)
    shutil.copyfile(kept / "params.yaml", restored / "params.yaml")
    assert wrong == {}


def test_experiments_run_only_what_depends_on_the_parameter(restored):
    commit(restored)
    ran = call(restored, "dvc", "exp", "run", "-S", "transition.tau_fraction=0.4").stdout
    assert "Running stage 'transitions'" in ran
    assert "Running stage 'tra" not in ran.replace("'transitions'", "")
    call(restored, "dvc", "exp", "run", "-S", "lr=0.00001", "conditions")
    assert "lr: 1e-05" in (restored / "params.yaml").read_text()
    assert read_yaml(restored / "data" / "conditions" / "base.yaml")["lr"] == 1e-5
    shown = call(restored, "dvc", "exp", "show", "--json").stdout
    assert "tau_fraction" in shown
    assert '"censored"' in shown


def test_scaling_curves_are_drawn_with_their_band(restored):
    curve = "dataset_size,tau,low,high\n100,10,8,12\n200,20,15,30\n"
    (restored / "metrics" / "scaling_curve.csv").write_text(curve)
    call(restored, "dvc", "plots", "diff", "HEAD", "--out", "shown")
    page = (restored / "shown" / "index.html").read_text()
    assert '"field": "low"' in page
    assert '"field": "high"' in page
    assert '"rev": "workspace"' in page
    shutil.rmtree(restored / "shown")


def test_a_bad_parameter_stops_before_any_result_is_touched(restored):
    before = results(restored)
    values = read_yaml(restored / "params.yaml")
    wrong = {**values["transition"], "tau_fraction": 2.0}
    for change in ({"lr": "fast"}, {"transition": wrong}, {"learning_rate": 1e-3}):
        write_yaml(restored / "params.yaml", {**values, **change})
        refused = call(restored, "dvc", "repro", check=False)
        assert refused.returncode != 0
        assert "error: " in refused.stderr
        assert "Traceback" not in refused.stderr
        assert results(restored) == before


def test_a_missing_run_is_named(restored):
    shutil.rmtree(restored / "data" / "runs" / "own-0")
    refused = call(restored, *STAGES["transitions"]["cmd"].split(), check=False)
    assert refused.returncode == 1
    assert "error: The run own-0 is missing: 'dvc repro train@own-0' trains it." in refused.stderr


def test_left_overs_are_pruned(restored):
    (restored / "data" / "runs" / "gone-0").mkdir()
    assert "gone-0" in call(restored, sys.executable, "-m", "scripts.prune").stdout
    assert not (restored / "data" / "runs" / "gone-0").exists()
    assert "up to date" in call(restored, "dvc", "repro").stdout
