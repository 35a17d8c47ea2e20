"""The weights that a mechanism holds are part of its identity: its name ends with a mark of them."""

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
"""Matches a mechanism with the mark of its weights, but no URL with a password."""
PLAIN = (bool, int, float, complex, str, type(None))


def mark(weights: Mapping[str, Any]) -> str:
    """Return `@` and a digest of tensors and plain values with their names, or "" if there are none.

    >>> mark({})
    ''
    >>> mark({"W": torch.eye(2)}) == mark({"W": torch.eye(2)}) != mark({"W": -torch.eye(2)})
    True
    """
    if not weights:
        return ""
    digest = hashlib.sha256()
    # Sorted, so that the order in which attributes are set does not change the mark.
    for name, value in sorted(weights.items()):
        digest.update(f"{name} ".encode())
        digest.update(_content(value) if isinstance(value, torch.Tensor) else repr(value).encode())
    return f"@{digest.hexdigest()[:12]}"


def held_by(thing: Any) -> dict[str, Any]:
    """Return the tensors of a callable, and the plain values of the modules that hold them, by name.

    The search covers modules, the object of a bound method, globals and closures of a function, and the
    attributes of an object. Tensors deeper inside, or in a file that is read later, are not found.
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
    for name, part in module.named_modules():
        for attribute, value in vars(part).items():
            plain = isinstance(value, PLAIN) and attribute != "training" and not attribute.startswith("_")
            if plain or isinstance(value, torch.Tensor):
                yield f"{path}.{name}.{attribute}", value


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield the objects in which a callable other than a module may hold tensors."""
    if isinstance(thing, partial):
        yield "func", thing.func
        yield from ((str(number), argument) for number, argument in enumerate(thing.args))
        yield from thing.keywords.items()
    elif isinstance(thing, MethodType):
        yield "self", thing.__self__
        yield "func", thing.__func__
    elif isinstance(thing, FunctionType):
        for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
            with suppress(ValueError):  # the variable is not assigned yet
                yield name, cell.cell_contents
        variables = thing.__globals__
        for name in thing.__code__.co_names:
            if isinstance(variables.get(name), torch.nn.Module | torch.Tensor):
                yield name, variables[name]
        defaults = enumerate(thing.__defaults__ or ())
        yield from ((str(number), value) for number, value in defaults)
        yield from (thing.__kwdefaults__ or {}).items()
    elif not isinstance(thing, type) and callable(thing):
        yield from getattr(thing, "__dict__", {}).items()


def _content(tensor: Tensor) -> bytes:
    """Return the dtype, the shape and the numbers of a tensor on any device."""
    tensor = tensor.detach()
    head = f"{tensor.dtype} {tuple(tensor.shape)} ".encode()
    # Meta tensors have no numbers, and sparse ones no flat view.
    if tensor.is_meta or tensor.layout is not torch.strided:
        return head
    # As bytes, since numpy has no bfloat16.
    raw: bytes = tensor.cpu().flatten().contiguous().view(torch.uint8).numpy().tobytes()
    return head + raw
