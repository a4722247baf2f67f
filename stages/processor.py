"""Setting up PyTorch in a stage."""

import ctypes
import os
import platform

import torch

_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_LARGEST_INT = 2**31 - 1


def set_up() -> torch.device:
    """Make equal runs give equal bytes and memory stay with the process; return where to compute.

    Without OMP_NUM_THREADS in the environment one thread computes. Several wait for each other a
    thousand times a step: where another program takes one of their cores, a step can take fifty
    times as long.

    Numbers too small to be normal (below 1e-38) count as 0: on some processors they are so slow
    that they double the time of a step at a learning rate of 5e-3.

    glibc gives large tensors back to the kernel as soon as they are freed, and the next ones cost
    fresh pages, which takes up to a third of an evaluation. Other C libraries are left as they are.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # equal runs on CUDA need it
    torch.use_deterministic_algorithms(True)
    # nothing here reads memory that was not written, so filling it only costs time
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.set_flush_denormal(True)
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, _LARGEST_INT)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
