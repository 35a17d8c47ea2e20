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


def read_whole(path: Path, max_bytes: int, content: str) -> bytes:
    """Return the content of a file, or raise a UsageError if it has more than `max_bytes` bytes.

    `content` names the expected content in the message. Pipes such as `<(zcat proof.json.gz)` are read for at
    most PATIENCE seconds.
    """
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to would wait forever.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            waits = not stat.S_ISREG(os.fstat(file).st_mode)
            data = _read(file, max_bytes, time.monotonic() + PATIENCE if waits else None)
        finally:
            os.close(file)
    except TimeoutError:
        raise UsageError(f"cannot read {path}: it did not end within {PATIENCE} seconds") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except ValueError:
        raise UsageError(f"cannot read {str(path)!r}: this is not a valid file name") from None
    if len(data) > max_bytes:
        raise UsageError(f"{path} is too large to be {content}: more than {max_bytes:,} bytes")
    return data


def _read(file: int, max_bytes: int, until: float | None) -> bytes:
    data = bytearray()
    # One byte more than allowed is read, which tells a file of exactly max_bytes from a longer one.
    while len(data) <= max_bytes:
        if until is not None and not _ready(file, until):
            raise TimeoutError
        chunk = os.read(file, min(CHUNK, max_bytes + 1 - len(data)))
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
