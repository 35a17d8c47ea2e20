"""The keyword arguments of a callable, read from its signature, and the properties that its attributes declare."""

from __future__ import annotations

import inspect
import re
from typing import Any

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import torch
from separatrix.mechanisms._positions import Causality
from separatrix.mechanisms.extras import Extra

SIGNATURE = "(q, k, v, counts=None, causal=False)"
FLAGS = ("causal", "is_causal")
"""Names of the parameter for causal attention."""
OPTIONS = ("counts", *FLAGS, "first", "present")
"""Keyword arguments that are passed to callables that take them."""
LAYER = "A layer that makes q, k and v of one input is no mechanism: give what it calls with them"
SAYS: dict[str, type] = {
    "causality": Causality,
    "permutation_equivariant": bool,
    "coordinate_free": bool,
    "length_free": bool,
    "normalised": bool,
    "mixes_heads": bool,
    "linear_in_values": bool,
    "twice_differentiable": bool,
    "fixed_width": int,
    "fixed_features": int,
    "fixed_heads": int,
}
"""Properties that a callable may declare by attributes, with their types; `causality` also by its name."""


def keyword_names(attend: Any, name: str) -> set[str]:
    """Return the names of the keyword arguments of a callable; it must be callable with q, k and v."""
    if not callable(attend):
        raise UsageError(f"{name} is not callable; an attention mechanism is called as {SIGNATURE}")
    signature = signature_of(attend)
    if signature is None:
        raise UsageError(f"{name} has no signature that can be read; wrap it in {SIGNATURE}")
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [parameter.name for parameter in signature.parameters.values() if parameter.kind in kinds]
    known = set(named[3:])
    declared = {getattr(extra, "name", None) for extra in getattr(attend, "extras", ())}
    try:
        signature.bind(None, None, None, **dict.fromkeys(known & {*OPTIONS, *declared}))
    except TypeError as error:
        hint = f". {LAYER}" if len(named) == 1 else ""
        raise UsageError(f"{name}{signature} cannot be called as {SIGNATURE}: {error}{hint}") from None
    return known


def signature_of(attend: Any) -> inspect.Signature | None:
    """Return the signature of a callable; for functions of torch in C, the one in their documentation."""
    try:
        return inspect.signature(attend.forward if isinstance(attend, torch.nn.Module) else attend)
    except (TypeError, ValueError):
        pass
    own = re.escape(getattr(attend, "__name__", ""))
    documented = re.match(rf"\s*{own}\(([^()]*)\)", attend.__doc__ or "") if own else None
    if documented is None:
        return None
    words = [word.split("=")[0].strip() for word in documented[1].split(",")]
    words = [word for word in words if word.isidentifier()]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [
            inspect.Parameter(word, kind, default=inspect.Parameter.empty if place < 3 else None)
            for place, word in enumerate(words)
        ]
    )


def declared_extras(attend: Any, name: str, known: set[str]) -> tuple[Extra, ...]:
    """Return the extras that a callable declares, all of which it must take."""
    extras = tuple(getattr(attend, "extras", ()))
    for extra in extras:
        if not isinstance(extra, Extra) or extra.name not in known:
            raise UsageError(f"{name} declares an extra that it does not take by name: {extra}")
    return extras


def read_declarations(attend: Any, name: str) -> dict[str, Any]:
    """Return the properties that a callable declares by attributes, each checked."""
    declared: dict[str, Any] = {}
    for attribute, kinds in SAYS.items():
        value = getattr(attend, attribute, None)
        if value is None or isinstance(attend, type):
            continue
        if attribute == "causality":
            known = {causality.name.lower(): causality for causality in Causality}
            value = value if isinstance(value, Causality) else known.get(str(value).lower())
        small = isinstance(value, int) and kinds is int and (isinstance(value, bool) or value < 1)
        if not isinstance(value, kinds) or small:
            wanted = "either, always or never" if attribute == "causality" else kinds.__name__
            raise UsageError(f"{name}.{attribute} = {getattr(attend, attribute)!r} is not {wanted}")
        declared["said_normalised" if attribute == "normalised" else attribute] = value
    if "fixed_width" in declared:
        declared.setdefault("fixed_features", None)
    return declared
