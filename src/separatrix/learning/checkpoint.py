"""Arrays as bytes and back: what a run goes on from, and the weights it ends with.

They are NumPy's npz, read without unpickling: nothing in a checkpoint is ever executed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.errors import SeparatrixError

VERSION = 1
"""Changed with what a checkpoint holds."""


class CheckpointError(SeparatrixError):
    """A run cannot go on from what it was given."""


def arrays(**named: Any) -> bytes:
    """Arrays by name as the bytes of an npz file, with the version of this format.

    >>> read_arrays(arrays(x=np.arange(3)))["x"]
    array([0, 1, 2])
    """
    made = BytesIO()
    np.savez(made, version=VERSION, **named)
    return made.getvalue()


def read_arrays(data: bytes) -> Mapping[str, NDArray[Any]]:
    """The arrays that `arrays` wrote, by name; a CheckpointError says why there are none."""
    try:
        with np.load(BytesIO(data), allow_pickle=False) as file:
            found = {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, NotImplementedError):
        raise CheckpointError("the checkpoint is damaged; --retry-failed begins anew") from None
    version = found.pop("version", np.array(0))
    if version.tolist() != VERSION:
        raise CheckpointError(
            f"the checkpoint has version {version}, and this program reads version {VERSION}; go on with the "
            "program that wrote it, or begin anew: --retry-failed"
        )
    return found
