"""The memory of a whole process: blocks of scores must not leave the heap in pieces too small to use again.

Tensors alone, as `separatrix.analysis.costs.cost` counts them, can be few at any time while the process
grows.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

LENGTH = 8192
PROGRAM = """
import os, sys, torch
from separatrix.mechanisms import _blocks, mechanism_named

torch.set_num_threads(1)
_blocks.MAX_SCORES = 1 << 16  # so that there are many blocks
mechanism, backward = mechanism_named(sys.argv[1]), sys.argv[2] == "backward"

def kib(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name))

def attend(length):
    tokens = [torch.rand(1, 1, length, 16).requires_grad_(backward) for _ in "qkv"]
    out = mechanism(*tokens, causal=True)
    if backward:
        torch.autograd.grad(out.sum(), tokens)

attend(512)  # loads what torch loads when it is first needed
before = kib("VmRSS:")
attend(int(sys.argv[3]))
print(kib("VmHWM:") - before)
"""


def kib_above(mechanism: str, mode: str, length: int) -> int:
    """The peak of a process above what a few tokens need."""
    command = [sys.executable, "-c", PROGRAM, mechanism, mode, str(length)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("mechanism", "mode"), [("alibi", "forward"), ("relu", "backward")])
def test_a_process_does_not_grow_with_the_square_of_the_tokens(mechanism: str, mode: str) -> None:
    """Tokens, outputs and gradients are 4 MiB, one block of scores is 256 KiB, and all are 256 MiB."""
    assert kib_above(mechanism, mode, LENGTH) < 32 * 1024
