"""Reading an untrusted file: some never end or never begin."""

from __future__ import annotations

import os
import select
import stat
import time
from pathlib import Path

from separatrix.core.errors import UsageError

PATIENCE = 10
"""Seconds within which a pipe must be written and closed."""
CHUNK = 1 << 16


def read_whole(path: Path, most: int, what: str) -> bytes:
    """Return the content of a file, or raise a UsageError if it has more than `most` bytes.

    `what` names the expected content in the message. Pipes such as `<(zcat proof.json.gz)` are read, too, for
    at most PATIENCE seconds.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            waits = not stat.S_ISREG(os.fstat(file).st_mode)
            data = _read(file, most, time.monotonic() + PATIENCE if waits else None)
        finally:
            os.close(file)
    except TimeoutError:
        raise UsageError(f"cannot read {path}: it did not end within {PATIENCE} seconds") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except ValueError:
        raise UsageError(f"cannot read {str(path)!r}: this is not a valid file name") from None
    if len(data) > most:
        raise UsageError(f"{path} is too large to be {what}: more than {most:,} bytes")
    return data


def _read(file: int, most: int, until: float | None) -> bytes:
    data = bytearray()
    while len(data) <= most:
        if until is not None and not _ready(file, until):
            raise TimeoutError
        chunk = os.read(file, min(CHUNK, most + 1 - len(data)))
        if not chunk:
            break
        data += chunk
    return bytes(data)


def _ready(file: int, until: float) -> bool:
    """Whether data or the end of the file arrives before the deadline."""
    waiting = select.poll()
    waiting.register(file, select.POLLIN)
    seconds = until - time.monotonic()
    return seconds > 0 and bool(waiting.poll(1000 * seconds))
