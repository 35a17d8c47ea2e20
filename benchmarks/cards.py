"""CPU time of the cards of user functions, relative to the CPU time of importing torch."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks._base import Measurement, at_most, require

OWN = """
import torch

def attend(q, k, v, causal=False):
    logits = q @ k.mT
    if causal:
        logits = logits.masked_fill(torch.ones_like(logits, dtype=torch.bool).triu(1), -torch.inf)
    return logits.softmax(-1) @ v
"""
LOOKING_BACK = """
import torch

def masked(q, k, v):
    logits = q @ k.mT
    return logits.masked_fill(torch.ones_like(logits, dtype=torch.bool).triu(1), -torch.inf).softmax(-1) @ v

def forgets(q, k, v):
    places = torch.arange(q.shape[-2], dtype=q.dtype)
    return masked(torch.cat([q, torch.ones_like(q[..., :1])], -1),
                  torch.cat([k, 0.01 * places[:, None].expand_as(k[..., :1])], -1), v)

def looped(q, k, v):
    out, (q, k, v) = v.dtype, (x.float() if x.dtype.itemsize < 4 else x for x in (q, k, v))
    state, rows = torch.zeros(*q.shape[:2], q.shape[-1], v.shape[-1], dtype=q.dtype), []
    for t in range(q.shape[-2]):
        state = state + k[..., t, :, None] * v[..., t, None, :]
        rows.append((q[..., t, None, :] @ state)[..., 0, :])
    return torch.stack(rows, dim=-2).to(out)
"""
"""Functions that are always causal: scores, scores that decay with distance, and a recurrence over tokens."""
FADING = """
import torch

def alibi(q, k, v, causal=False):
    heads, i, j = q.shape[1], torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)
    logits = q @ k.mT - (slopes[:, None, None] * (i - j).abs()).to(q.dtype)
    return (logits.masked_fill(j > i, -torch.inf) if causal else logits).softmax(-1) @ v
"""
"""A mechanism that depends on positions, so that every draw has its own position: the most expensive case."""
CARDS = {
    "mine:attend": "",
    "fading:alibi": ", which depends on positions",
    "back:masked": ", which is always causal",
    "back:looped": ", which is always causal",
    "back:forgets": ", which is always causal",
}
"""Mechanisms whose complete card must take at most 60 seconds, and their special properties."""
IMPORTS = "import torch, torch.func, numpy, scipy.special"
IMPORT_SECONDS = 2.0
"""CPU time of these imports on the machine for which the limits are 10 s (contract) and 60 s (card)."""


def measure() -> Iterator[Measurement]:
    """Yield the measurements of this file."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "mine.py").write_text(OWN)
        (Path(folder) / "back.py").write_text(LOOKING_BACK)
        (Path(folder) / "fading.py").write_text(FADING)
        imports = median(cpu_seconds(folder, IMPORTS) for _ in range(5))
        unit = "times the CPU seconds of importing torch"
        yield at_most(
            "separatrix assess mine:attend --quick",
            lambda: median(_assess(folder, "--quick") for _ in range(3)) / imports,
            unit,
            10 / IMPORT_SECONDS,
        )
        for mechanism, remark in CARDS.items():
            yield at_most(
                f"separatrix assess {mechanism}{remark}",
                lambda mechanism=mechanism: _assess(folder, mechanism=mechanism) / imports,  # type: ignore[misc]
                unit,
                60 / IMPORT_SECONDS,
            )


def _assess(folder: str, *words: str, mechanism: str = "mine:attend") -> float:
    command = ("from separatrix.cli import main; main()", "assess", mechanism, *words)
    return cpu_seconds(folder, *command)


def cpu_seconds(folder: str, program: str, *words: str) -> float:
    """Return the CPU seconds of a new process that runs a program, and require that it succeeds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    require(done.returncode == 0, f"{program} {' '.join(words)}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
