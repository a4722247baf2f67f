import subprocess
import sys

SCRIPT = """
import platform, resource
import torch
from stages.processor import set_up
device = set_up()
assert device.type == ("cuda" if torch.cuda.is_available() else "cpu")
assert torch.are_deterministic_algorithms_enabled()


def faults_of_a_fresh_tensor():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(50_000_000)  # 200 MB, about 50,000 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults_of_a_fresh_tensor()
faults = [faults_of_a_fresh_tensor() for _ in range(4)]
assert platform.libc_ver()[0] != "glibc" or min(faults) < 5000, faults
print("done")
"""


def test_a_process_that_is_set_up_computes_equally_and_keeps_its_memory():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr
