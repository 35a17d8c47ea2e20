"""What a choice is made for: a length, a number format, a memory, and the sizes of a model."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, ClassVar

from pydantic import BeforeValidator

from separatrix.core.numbers.formats import TORCH_NAMES
from separatrix.core.parameters import Constraint, Natural, Parameters, UsageError, between
from separatrix.core.parameters.model import nearest

UNITS = {"B": 1} | {
    f"{letter}{kind}": base**power
    for power, letter in enumerate("KMGT", 1)
    for kind, base in (("iB", 1024), ("B", 1000))
}
_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]*)", re.ASCII)
_NAMES = {**TORCH_NAMES, **{name: name for name in TORCH_NAMES.values()}}


def read_dtype(value: object) -> str:
    """A number format by its name in torch.

    >>> read_dtype("bf16"), read_dtype("float32")
    ('bfloat16', 'float32')
    """
    name = str(value).removeprefix("torch.")
    if name not in _NAMES:
        known = ", ".join(f"{long} ({short})" for short, long in TORCH_NAMES.items())
        raise UsageError(
            f"dtype={name} is not a number format{nearest(name, list(_NAMES))}; there are: {known}"
        )
    return _NAMES[name]


def read_memory(value: object) -> int:
    """Bytes from a number with its unit; a whole number of Python's is bytes.

    >>> read_memory("2GiB"), read_memory("1.5 kB"), read_memory(4096)
    (2147483648, 1500, 4096)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        found = Fraction(value)
    else:
        written = _SIZE.fullmatch(str(value).strip())
        if written is None:
            raise UsageError(f"memory={value} is not a size; write for example memory=2GiB")
        if not written["unit"]:
            raise UsageError(f"memory={value} has no unit; write for example memory={value}GiB")
        units = {unit.lower(): size for unit, size in UNITS.items()}
        if written["unit"].lower() not in units:
            whole = [unit for unit in UNITS if unit[:-1].removesuffix("i").lower() == written["unit"].lower()]
            likely = " or ".join(f"memory={written['number']}{unit}" for unit in whole)
            there = f"write {likely}" if whole else f"there are: {', '.join(UNITS)}"
            raise UsageError(f"memory={value} has no unit that is known; {there}")
        found = Fraction(written["number"]) * units[written["unit"].lower()]
    if not 1 <= found <= 2**60:
        raise UsageError(f"memory={value} is out of range; it must be 1 B to 2^60 B")
    return int(found)


def spelled_bytes(size: int) -> str:
    """Bytes for people, in four digits at most.

    >>> spelled_bytes(2**31), spelled_bytes(1000), spelled_bytes(5 * 2**20 + 2**19)
    ('2 GiB', '1000 B', '5.5 MiB')
    """
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min(max(0, (size.bit_length() - 1) // 10), len(units) - 1)
    if round(size / 1024**power) >= 1024 and power + 1 < len(units):
        power += 1
    number = size / 1024**power
    return f"{number:.0f} {units[power]}" if number >= 100 else f"{number:.3g} {units[power]}"


class Budget(Parameters):
    """How many tokens, in which format, in how much memory, for a model of which sizes."""

    owner: ClassVar[str] = "choose"
    n: Natural
    dtype: Annotated[str, BeforeValidator(read_dtype)] = "bfloat16"
    memory: Annotated[int, BeforeValidator(read_memory)] | None = None
    """Bytes for what is kept of one sequence, by all layers; None for any number."""
    layers: Natural = 12
    heads: Natural = 12
    """Of a layer, that ask."""
    kv_heads: Natural | None = None
    """Of a layer, whose keys and values are kept: fewer than ask, where some share them; None for all."""
    width: Natural = 64
    """Of a head."""
    constraints: ClassVar[tuple[Constraint, ...]] = (
        between("n", 2, 10**18),
        between("layers", 1, 1000),
        between("heads", 1, 1024),
        between("kv_heads", 1, 1024),
        Constraint(
            ("heads", "kv_heads"),
            lambda p: p.heads % p.kv_heads == 0,
            lambda p: f"kv_heads={p.kv_heads} does not divide heads={p.heads}: each is shared by as many",
        ),
        between("width", 1, 1024),
    )

    @property
    def format(self) -> str:
        """The short name of the number format."""
        return next(short for short, long in TORCH_NAMES.items() if long == self.dtype)

    @property
    def kept_heads(self) -> int:
        """Of a layer, the heads whose keys and values are kept."""
        return self.kv_heads or self.heads

    @property
    def model(self) -> str:
        """The sizes of the model in words."""
        layers = f"{self.layers} layer{'s' * (self.layers > 1)}"
        shared = "" if self.kept_heads == self.heads else f" ({self.kept_heads} of keys and values)"
        return f"{layers} of {self.heads} head{'s' * (self.heads > 1)}{shared} of width {self.width}"
