"""Writing one file whole or not at all, and finding out beforehand that it cannot be written."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from separatrix.parameters.errors import UsageError


def require_writable(path: Path, endings: Collection[str] = ()) -> None:
    """Complain before the work is done, not after."""
    if endings and path.suffix not in endings:
        known = ", ".join(sorted(endings))
        raise UsageError(f"{path} does not say what to write; let it end in one of {known}")
    folder = path.parent
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder")
    if not folder.is_dir():
        raise UsageError(f"cannot write {path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {path}: {folder} may not be written to")


def write_whole(path: Path, content: bytes) -> None:
    """Write to a hidden neighbour first, then put it in place in one step."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UsageError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from None
