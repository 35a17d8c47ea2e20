"""What a callable takes by name, read from its signature, and what it says of itself by attributes."""

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
"""What a callable may call its parameter for causal attention."""
OPTIONS = ("counts", *FLAGS, "first", "present")
"""What a callable is given if it takes it."""
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
"""What a callable may say of itself by attributes of these names and kinds; `causality` also by its name."""


def taken_by_name(attend: Any, name: str) -> set[str]:
    """What a callable takes by name beside q, k and v, if it can be called with these at all."""
    if not callable(attend):
        raise UsageError(f"{name} is not callable; an attention mechanism is called as {SIGNATURE}")
    signature = signature_of(attend)
    if signature is None:
        raise UsageError(f"{name} has no signature that can be read; wrap it in {SIGNATURE}")
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [parameter.name for parameter in signature.parameters.values() if parameter.kind in kinds]
    known = set(named[3:])
    declared = {getattr(each, "name", None) for each in getattr(attend, "extras", ())}
    try:
        signature.bind(None, None, None, **dict.fromkeys(known & {*OPTIONS, *declared}))
    except TypeError as error:
        hint = f". {LAYER}" if len(named) == 1 else ""
        raise UsageError(f"{name}{signature} cannot be called as {SIGNATURE}: {error}{hint}") from None
    return known


def signature_of(attend: Any) -> inspect.Signature | None:
    """The signature of a callable; of a function of torch's in C, the one that its documentation gives."""
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
    """The extras that a callable declares, all of which it must take."""
    extras = tuple(getattr(attend, "extras", ()))
    for extra in extras:
        if not isinstance(extra, Extra) or extra.name not in known:
            raise UsageError(f"{name} declares an extra that it does not take by name: {extra}")
    return extras


def said_by(attend: Any, name: str) -> dict[str, Any]:
    """What a callable says by attributes, each checked."""
    found: dict[str, Any] = {}
    for attribute, kinds in SAYS.items():
        value = getattr(attend, attribute, None)
        if value is None or isinstance(attend, type):
            continue
        if attribute == "causality":
            known = {each.name.lower(): each for each in Causality}
            value = value if isinstance(value, Causality) else known.get(str(value).lower())
        small = isinstance(value, int) and kinds is int and (isinstance(value, bool) or value < 1)
        if not isinstance(value, kinds) or small:
            wanted = "either, always or never" if attribute == "causality" else kinds.__name__
            raise UsageError(f"{name}.{attribute} = {getattr(attend, attribute)!r} is not {wanted}")
        found["said_normalised" if attribute == "normalised" else attribute] = value
    if "fixed_width" in found:
        found.setdefault("fixed_features", None)
    return found
