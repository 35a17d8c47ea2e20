"""Arrays as bytes and back: what a run goes on from, and the weights it ends with.

They are NumPy's npz with uncompressed members, read without unpickling: nothing in a checkpoint is ever
executed, and reading one allocates no more memory than it has bytes.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from separatrix.core.errors import SeparatrixError

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
"""Readers of a header by the version of the npy format."""
NUMBERS = "biufc"
"""Kinds of NumPy's types that an array may have: booleans and numbers."""
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
        with zipfile.ZipFile(BytesIO(data)) as file:
            found = {
                member.filename.removesuffix(".npy"): _read_member(file, member) for member in file.infolist()
            }
    except Exception:  # Python's and NumPy's readers raise all kinds of errors on damaged or crafted bytes
        raise CheckpointError("the checkpoint is damaged; --retry-failed begins anew") from None
    version = found.pop("version", np.array(0))
    if version.tolist() != VERSION:
        raise CheckpointError(
            f"the checkpoint has version {version}, and this program reads version {VERSION}; go on with the "
            "program that wrote it, or begin anew: --retry-failed"
        )
    return found


def _read_member(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Read an array whose header agrees with the bytes that follow it, before memory is taken for it."""
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError("a compressed array, which this program never writes")
    content = BytesIO(file.read(member))
    reader = HEADERS.get(npy.read_magic(content))
    if reader is None:
        raise ValueError("an array in an unknown format")
    shape, in_fortran_order, dtype = reader(content)
    count = math.prod(shape)
    left = len(content.getbuffer()) - content.tell()
    if dtype.kind not in NUMBERS or min(shape, default=0) < 0 or count * dtype.itemsize != left:
        raise ValueError("an array whose header does not fit its bytes")
    flat = np.frombuffer(content.getvalue(), dtype, count, content.tell())
    return flat.reshape(shape, order="F" if in_fortran_order else "C").copy()
