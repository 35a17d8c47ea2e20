"""A user's own attention, given as a callable or an nn.Module, as a mechanism."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from typing import Any, ClassVar

from separatrix.mechanisms._base import (
    Attended,
    Causality,
    Counts,
    Keys,
    Mechanism,
    Queries,
    Values,
    check_request,
)
from separatrix.mechanisms._places import placed
from separatrix.mechanisms._request import filled
from separatrix.mechanisms.extras import Extra
from separatrix.mechanisms.weights import held_by
from separatrix.parameters import UsageError
from separatrix.tensors import Tensor, torch

SIGNATURE = "(q, k, v, counts=None, causal=False)"
OPTIONS = ("counts", "causal", "first", "present")
"""What a callable is given if it takes it."""
Weights = tuple[tuple[int, int], ...]
"""Where the numbers of a module lie, and how often they have changed there."""


class CustomMechanism(Mechanism):
    """A callable as a mechanism: it is its own definition, and claims nothing that was not seen.

    A module is copied, set to evaluation, and cast to the dtype of the values it is given. One that does not
    take `first` gets queries of zeros before the others, and one that does not take `present` each element of
    the batch cut to its present tokens. Of what else it takes by name, what it declares as `extras` (a tuple
    of `Extra`) is known to the contract and to layers; the rest is passed as given.
    """

    family = "custom"
    formula = "as programmed"
    permutation_equivariant = False
    streams = False
    takes_causal: ClassVar[bool]
    takes_by_name: ClassVar[frozenset[str]]
    trains: bool = False
    """Whether a module is called itself, and not as a copy."""

    def __init__(self, attend: Callable[..., Tensor]) -> None:
        super().__init__()
        self.attend = attend
        self._cast: dict[torch.dtype, tuple[Weights, Callable[..., Tensor]]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _trained if self.trains else wrap, (self.attend, self.name)

    @property
    def held_weights(self) -> dict[str, Any]:
        return held_by(self.attend)

    def trained(self) -> CustomMechanism:
        """The same, but that a module is called itself and not as a copy: gradients reach its weights."""
        return _trained(self.attend, self.name)

    @cached_property
    def _adds_up(self) -> bool:
        drawn, double = torch.Generator().manual_seed(1), torch.float64
        q, k = (torch.rand(2, 3, 13, 5, generator=drawn, dtype=double) + 0.1 for _ in "qk")
        try:
            found = self(q, k, torch.ones(2, 3, 13, 7, dtype=double))
        except Exception:
            return False
        return bool(((found - 1).abs() <= 64 * torch.finfo(double).eps).all())

    @property
    def normalised(self) -> bool:
        """Whether the weights added up to 1 on seeded tokens: measured, since nothing is claimed."""
        return self._adds_up

    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_request(self, counts, causal)
        first, present = more.pop("first", 0), more.pop("present", None)
        declared = {extra.name for extra in self.extras}
        for name in more:
            if name not in self.takes_by_name:
                raise UsageError(f"{self.spelled} does not take {name}")

        def attend(
            q: Tensor, k: Tensor, v: Tensor, counts: Any, options: dict[str, Any], given: dict[str, Any]
        ) -> Tensor:
            known = filled(self, q, k, v, {name: x for name, x in given.items() if name in declared})
            return self._attended(q, k, v, counts, causal, {**options, **given, **known})

        return placed(self, attend, q, k, v, counts, causal, first, present, more)

    __call__ = definition

    def _attended(
        self, q: Tensor, k: Tensor, v: Tensor, counts: Tensor | None, causal: bool, options: dict[str, Any]
    ) -> Tensor:
        if counts is not None:
            options["counts"] = counts
        if self.takes_causal:
            options["causal"] = causal
        try:
            out: Any = self._in(v.dtype)(q, k, v, **options)
            wanted = (*q.shape[:-1], v.shape[-1])
            if not isinstance(out, torch.Tensor) or out.shape != wanted:
                shape = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
                raise ValueError(f"it returned {shape} where a tensor of shape {wanted} was due")
            return out
        except Exception as error:
            error.add_note(f"{self.spelled} raised")
            raise

    def _in(self, dtype: torch.dtype) -> Callable[..., Tensor]:
        if self.trains or not isinstance(self.attend, torch.nn.Module):
            return self.attend
        held = (*self.attend.parameters(), *self.attend.buffers())
        weights = tuple((each.data_ptr(), each._version) for each in held)
        if dtype not in self._cast or self._cast[dtype][0] != weights:
            self._cast[dtype] = weights, deepcopy(self.attend).eval().to(dtype)
        return self._cast[dtype][1]


def wrap(attend: Any, name: str | None = None) -> Mechanism:
    """A mechanism from anything that attends: a Mechanism as it is, or a callable of SIGNATURE.

    >>> wrap(lambda q, k, v: (q @ k.mT).softmax(-1) @ v, "mine").takes_counts
    False
    """
    if isinstance(attend, Mechanism):
        return attend
    if isinstance(attend, type):
        try:
            attend = attend()
        except Exception as error:
            raise UsageError(f"{attend.__name__} is a class; give an instance ({error})") from None
        return wrap(attend, name)
    name = str(name or getattr(attend, "__name__", type(attend).__name__))
    known = _parameters(attend, name)
    takes_causal = "causal" in known
    variables = {
        "name": name,
        "source": str(getattr(attend, "__module__", type(attend).__module__)),
        "causality": Causality.EITHER if takes_causal else Causality.NEVER,
        "takes_counts": "counts" in known,
        "takes_causal": takes_causal,
        "takes_first": "first" in known,
        "takes_present": "present" in known,
        "takes_by_name": frozenset(known.difference(OPTIONS)),
        "extras": tuple(_declared(attend, name, known)),
        "__doc__": inspect.getdoc(attend),
        "__module__": __name__,
    }
    made: type[CustomMechanism] = type("CustomMechanism", (CustomMechanism,), variables)
    return made(attend)


def _trained(attend: Any, name: str) -> CustomMechanism:
    made = wrap(attend, name)
    assert isinstance(made, CustomMechanism)
    made.trains = True
    return made


def _parameters(attend: Any, name: str) -> set[str]:
    """What a callable takes by name, if it can be called with q, k and v at all."""
    if not callable(attend):
        raise UsageError(f"{name} is not callable; an attention mechanism is called as {SIGNATURE}")
    try:
        signature = inspect.signature(attend.forward if isinstance(attend, torch.nn.Module) else attend)
    except (TypeError, ValueError):
        raise UsageError(f"{name} has no signature that can be read; wrap it in {SIGNATURE}") from None
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    named = [each.name for each in signature.parameters.values() if each.kind in kinds]
    known = set(named[3:])
    declared = {getattr(each, "name", None) for each in getattr(attend, "extras", ())}
    try:
        signature.bind(None, None, None, **dict.fromkeys(known & {*OPTIONS, *declared}))
    except TypeError as error:
        raise UsageError(f"{name}{signature} cannot be called as {SIGNATURE}: {error}") from None
    return known


def _declared(attend: Any, name: str, known: set[str]) -> tuple[Extra, ...]:
    """The extras that a callable declares, all of which it must take."""
    extras = tuple(getattr(attend, "extras", ()))
    for extra in extras:
        if not isinstance(extra, Extra) or extra.name not in known:
            raise UsageError(f"{name} declares an extra that it does not take by name: {extra}")
    return extras
