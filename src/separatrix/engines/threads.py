"""How many threads torch uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from separatrix.tensors import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: on many small tensors threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
