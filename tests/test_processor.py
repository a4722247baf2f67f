import os
import subprocess
import sys

import pytest

SCRIPT = """
import platform, resource
import torch
from stages.processor import set_up
device = set_up()
assert device.type == ("cuda" if torch.cuda.is_available() else "cpu")
assert torch.are_deterministic_algorithms_enabled()


def faults_of_a_fresh_tensor():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(10_000_000)  # 40 MB, about 10,000 pages: glibc maps so much anew by itself
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

# a small allocation may split a block that was freed, so that the next tensor needs another one
faults = [faults_of_a_fresh_tensor() for _ in range(50)]
assert platform.libc_ver()[0] != "glibc" or max(faults[-5:]) < 1000, faults
print("done")
"""


def test_a_process_that_is_set_up_computes_equally_and_keeps_its_memory():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize(("given", "threads"), [(None, 1), ("2", 2)])
def test_one_thread_computes_unless_the_environment_says_otherwise(given, threads):
    script = "import torch; from stages.processor import set_up; set_up()\n"
    script += f"assert torch.get_num_threads() == {threads}, torch.get_num_threads()"
    environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
    if given:
        environment["OMP_NUM_THREADS"] = given
    command = [sys.executable, "-c", script]
    subprocess.run(command, env=environment, check=True)
