"""Checkpoints: save the state of a run as bytes, and restore a run from them.

They are NumPy's npz with uncompressed members, read without unpickling: nothing in a checkpoint is ever
executed, and reading one allocates memory in proportion to its size.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
import torch
from numpy.lib import format as npy
from numpy.typing import NDArray
from torch import nn

from separatrix.core.errors import SeparatrixError
from separatrix.training.learning.curves import Curves

HEADER_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
"""By the version of the npy format."""
NUMBER_KINDS = "biufc"
"""Kinds of NumPy types that an array may have: booleans and numbers."""
VERSION = 1
"""To be increased when the contents of a checkpoint change."""
WEIGHTS, MOMENTS, CURVES = "weights/", "optimizer/", "curves/"
MOMENT_NAMES = ("step", "exp_avg", "exp_avg_sq")
"""The state of AdamW for each weight."""


class CheckpointError(SeparatrixError):
    """A run cannot be continued from a checkpoint."""


def pack_arrays(**arrays: Any) -> bytes:
    """Return arrays by name as the bytes of an npz file, with the version of this format.

    >>> unpack_arrays(pack_arrays(x=np.arange(3)))["x"]
    array([0, 1, 2])
    """
    file = BytesIO()
    np.savez(file, version=VERSION, **arrays)
    return file.getvalue()


def unpack_arrays(data: bytes) -> Mapping[str, NDArray[Any]]:
    """Return the arrays of `pack_arrays` by name, or raise a CheckpointError."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as file:
            arrays = {member.filename.removesuffix(".npy"): _read_member(file, member) for member in file.infolist()}
    except Exception:  # Python's and NumPy's readers raise all kinds of errors on damaged or crafted bytes
        raise CheckpointError("the checkpoint is damaged; start again with --retry-failed") from None
    version = arrays.pop("version", np.array(0))
    if version.tolist() != VERSION:
        raise CheckpointError(
            f"the checkpoint has version {version}, and this program reads version {VERSION}; continue with "
            "the program that wrote it, or start again with --retry-failed"
        )
    return arrays


def _read_member(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Read an array; its header must agree with the size of its content before memory is allocated."""
    if member.compress_type != zipfile.ZIP_STORED:
        raise ValueError("a compressed array, which this program never writes")
    content = BytesIO(file.read(member))
    read_header = HEADER_READERS.get(npy.read_magic(content))
    if read_header is None:
        raise ValueError("an array in an unknown format")
    shape, in_fortran_order, dtype = read_header(content)
    count = math.prod(shape)
    size = len(content.getbuffer()) - content.tell()
    if dtype.kind not in NUMBER_KINDS or min(shape, default=0) < 0 or count * dtype.itemsize != size:
        raise ValueError("an array whose header does not fit its bytes")
    # The copy is writable, which torch requires of an array that it shares.
    flat = np.frombuffer(content.getvalue(), dtype, count, content.tell())
    return flat.reshape(shape, order="F" if in_fortran_order else "C").copy()


def save_checkpoint(step: int, model: nn.Module, optimizer: torch.optim.Optimizer, curves: Curves) -> bytes:
    """Return a checkpoint of the step, the weights, the optimizer's moments and the curves."""
    arrays: dict[str, Any] = {"step": step}
    arrays |= {WEIGHTS + name: tensor.cpu().numpy() for name, tensor in model.state_dict().items()}
    for number, weight in enumerate(model.parameters()):
        for name, tensor in optimizer.state.get(weight, {}).items():
            arrays[f"{MOMENTS}{number}/{name}"] = tensor.cpu().numpy()
    arrays |= {CURVES + name: array for name, array in curves.arrays().items()}
    return pack_arrays(**arrays)


def restore_checkpoint(checkpoint: bytes, model: nn.Module, optimizer: torch.optim.Optimizer, curves: Curves) -> int:
    """Set model, optimizer and curves to the state of a checkpoint, and return its number of steps."""
    arrays = unpack_arrays(checkpoint)

    def strip(prefix: str) -> dict[str, Any]:
        return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

    try:
        model.load_state_dict({name: torch.from_numpy(array) for name, array in strip(WEIGHTS).items()})
        parameters = list(model.parameters())
        for path, array in strip(MOMENTS).items():
            number, name = path.split("/")
            weight, moment = parameters[int(number)], torch.from_numpy(array)
            if name not in MOMENT_NAMES or moment.shape != (weight.shape if name != "step" else ()):
                raise ValueError(f"{path} does not belong to this optimizer")
            optimizer.state[weight][name] = moment.to("cpu" if name == "step" else weight.device)
            # AdamW also steps weights that get no gradient any more, as long as their gradient is not None.
            weight.grad = torch.zeros_like(weight)
        curves.restore(strip(CURVES))
        if int(arrays["step"]) != curves.step_count:
            raise ValueError("the curves have another number of steps")
    except (KeyError, RuntimeError, ValueError, TypeError, IndexError, OverflowError):
        message = "the checkpoint does not belong to this run; start again with --retry-failed"
        raise CheckpointError(message) from None
    return curves.step_count
