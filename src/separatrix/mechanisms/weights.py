"""The weights that a mechanism holds are part of what it is: a mark of them stands in its spelling."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from separatrix.core.tensors import Tensor, torch

MARKED = re.compile("((?!.*//)[^@]+)@[0-9a-f]{12}")
"""A mechanism with the mark of its weights; an address with a password is none."""
PLAIN = (bool, int, float, complex, str, type(None))


def mark(held: Mapping[str, Any]) -> str:
    """`@` and a digest of tensors and plain values by their names, or nothing where there are none.

    >>> mark({})
    ''
    >>> mark({"W": torch.eye(2)}) == mark({"W": torch.eye(2)}) != mark({"W": -torch.eye(2)})
    True
    """
    if not held:
        return ""
    found = hashlib.sha256()
    for name, value in sorted(held.items()):
        found.update(f"{name} ".encode())
        found.update(_content(value) if isinstance(value, torch.Tensor) else repr(value).encode())
    return f"@{found.hexdigest()[:12]}"


def held_by(thing: Any) -> dict[str, Any]:
    """The tensors that a callable computes with, by name, and the plain values of the modules they are in.

    They are looked for in a module, in what a method is bound to, in what a function names or closes over,
    and in the attributes of an object. What is deeper inside, or in a file that is read later, is not seen.
    """
    if "torch" not in sys.modules:  # then nobody holds a tensor
        return {}
    return dict(_walk(thing, "", 3))


def _walk(thing: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, torch.Tensor):
        yield path, thing
    elif isinstance(thing, torch.nn.Module):
        yield from _of_module(thing, path)
    elif depth:
        for name, part in _parts(thing):
            yield from _walk(part, f"{path}.{name}", depth - 1)


def _of_module(module: torch.nn.Module, path: str) -> Iterator[tuple[str, Any]]:
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        yield f"{path}.{name}", tensor
    for name, each in module.named_modules():
        for attribute, value in vars(each).items():
            plain = isinstance(value, PLAIN) and attribute != "training" and not attribute.startswith("_")
            if plain or isinstance(value, torch.Tensor):
                yield f"{path}.{name}.{attribute}", value


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """What a callable that is no module may hold tensors in."""
    if isinstance(thing, partial):
        yield "func", thing.func
        yield from ((str(number), each) for number, each in enumerate(thing.args))
        yield from thing.keywords.items()
    elif isinstance(thing, MethodType):
        yield "self", thing.__self__
        yield "func", thing.__func__
    elif isinstance(thing, FunctionType):
        for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
            with suppress(ValueError):  # it is not filled yet
                yield name, cell.cell_contents
        known = thing.__globals__
        for name in thing.__code__.co_names:
            if isinstance(known.get(name), torch.nn.Module | torch.Tensor):
                yield name, known[name]
        defaults = enumerate(thing.__defaults__ or ())
        yield from ((str(number), each) for number, each in defaults)
        yield from (thing.__kwdefaults__ or {}).items()
    elif not isinstance(thing, type) and callable(thing):
        yield from getattr(thing, "__dict__", {}).items()


def _content(tensor: Tensor) -> bytes:
    """The dtype, the shape and the numbers of a tensor, wherever it is."""
    there = tensor.detach()
    head = f"{there.dtype} {tuple(there.shape)} ".encode()
    if there.is_meta or there.layout is not torch.strided:
        return head
    raw: bytes = there.cpu().flatten().contiguous().view(torch.uint8).numpy().tobytes()
    return head + raw
