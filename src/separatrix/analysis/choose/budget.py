"""The requirements of a choice: a length, a number format, a memory, and the sizes of a model."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, ByteSize, TypeAdapter, ValidationError

from separatrix.core.numbers.formats import TORCH_NAMES
from separatrix.core.parameters import Constraint, Natural, Parameters, UsageError, limit
from separatrix.core.parameters.model import nearest

_SIZE = TypeAdapter(ByteSize)
_DTYPES = {**TORCH_NAMES, **{name: name for name in TORCH_NAMES.values()}}


def read_dtype(value: object) -> str:
    """Return the name of a number format in torch.

    >>> read_dtype("bf16"), read_dtype("float32")
    ('bfloat16', 'float32')
    """
    name = str(value).removeprefix("torch.")
    if name not in _DTYPES:
        formats = ", ".join(f"{long} ({short})" for short, long in TORCH_NAMES.items())
        hint = nearest(name, list(_DTYPES))
        raise UsageError(f"dtype={name} is not a number format{hint}; there are: {formats}")
    return _DTYPES[name]


def read_memory(value: object) -> int:
    """Return the bytes of a number with a unit; a Python integer is a number of bytes.

    >>> read_memory("2GiB"), read_memory("1.5 kB"), read_memory(4096)
    (2147483648, 1500, 4096)
    """
    if isinstance(value, str) and value.strip()[-1:].isdigit():
        raise UsageError(f"memory={value} has no unit; write for example memory={value}GiB")
    try:
        size = int(_SIZE.validate_python(value))
    except ValidationError:
        raise UsageError(f"memory={value} is not a size; write for example memory=2GiB or memory=500MB") from None
    if not 1 <= size <= 2**60:
        raise UsageError(f"memory={value} is out of range; it must be 1 B to 2^60 B")
    return size


def format_bytes(size: int) -> str:
    """Format a number of bytes in four digits at most.

    >>> format_bytes(2**31), format_bytes(1000), format_bytes(5 * 2**20 + 2**19)
    ('2 GiB', '1000 B', '5.5 MiB')
    """
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min(max(0, (size.bit_length() - 1) // 10), len(units) - 1)
    if round(size / 1024**power) >= 1024 and power + 1 < len(units):
        power += 1
    number = size / 1024**power
    return f"{number:.0f} {units[power]}" if number >= 100 else f"{number:.3g} {units[power]}"


class Budget(Parameters):
    """The number of tokens, the number format, the memory, and the sizes of the model."""

    owner: ClassVar[str] = "choose"
    n: Natural
    dtype: Annotated[str, BeforeValidator(read_dtype)] = "bfloat16"
    memory: Annotated[int, BeforeValidator(read_memory)] | None = None
    layers: Natural = 12
    heads: Natural = 12
    kv_heads: Natural | None = None
    width: Natural = 64
    constraints: ClassVar[tuple[Constraint, ...]] = (
        limit("n", 2, 10**18),
        limit("layers", 1, 1000),
        limit("heads", 1, 1024),
        limit("kv_heads", 1, 1024),
        Constraint(
            ("heads", "kv_heads"),
            lambda p: p.heads % p.kv_heads == 0,
            lambda p: f"kv_heads={p.kv_heads} does not divide heads={p.heads}; equally many heads share each",
        ),
        limit("width", 1, 1024),
    )

    @property
    def format(self) -> str:
        """The short name of the number format."""
        return next(short for short, long in TORCH_NAMES.items() if long == self.dtype)
