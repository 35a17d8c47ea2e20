"""A user's own attention, given as a callable or an nn.Module, as a mechanism."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import deepcopy
from functools import cached_property, partial
from typing import Any, ClassVar

from separatrix.errors import one_line
from separatrix.mechanisms import observed
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
FLAGS = ("causal", "is_causal")
"""What a callable may call its parameter for causal attention."""
OPTIONS = ("counts", *FLAGS, "first", "present")
"""What a callable is given if it takes it."""
Weights = tuple[tuple[int, int], ...]
"""Where the numbers of a module lie, and how often they have changed there."""
SAYS: dict[str, type] = {
    "causality": Causality,
    "permutation_equivariant": bool,
    "coordinate_free": bool,
    "length_free": bool,
    "normalised": bool,
    "linear_in_values": bool,
    "twice_differentiable": bool,
    "fixed_width": int,
    "fixed_features": int,
    "fixed_heads": int,
}
"""What a callable may say of itself by attributes of these names and kinds; `causality` also by its name."""
LONGEST_SEEN = 1 << 13
"""On more tokens than this nothing is tried out."""


FOUND_OUT = frozenset(
    ("fixed_width", "fixed_features", "fixed_heads", "causality", "takes_counts", "linear_in_values")
)
"""What a callable does not say is found out by calling it."""


class CustomMechanism(Mechanism):
    """A callable as a mechanism: it is its own definition, and claims nothing that was not said or seen.

    A module is copied, set to evaluation, and cast to the dtype of the values it is given. One that does not
    take `first` gets queries of zeros before the others, and one that does not take `present` each element of
    the batch cut to its present tokens. Of what else it takes by name, what it declares as `extras` (a tuple
    of `Extra`) is known to the contract and to layers; the rest is passed as given. What it does not
    keep, or keeps, it says by attributes: those in SAYS.
    """

    family = "custom"
    formula = "as programmed"
    permutation_equivariant = False
    streams = False
    takes_by_name: ClassVar[frozenset[str]]
    trains: bool = False
    """Whether a module is called itself, and not as a copy."""
    twice_differentiable = None
    flag: ClassVar[str]
    """What its parameter for causal attention is called; empty if it has none."""
    said_normalised: ClassVar[bool | None] = None
    looked_at: ClassVar[bool] = False
    """Whether those in FOUND_OUT are known, and not only guessed from its signature."""

    def __getattribute__(self, name: str) -> Any:
        """What has to be found out is found out when it is first asked for: a plan that names a callable
        does not call it."""
        if name in FOUND_OUT and not type(self).looked_at:
            type(self).looked_at = True
            _look_at(self, _said(self.attend, self.name))
        return super().__getattribute__(name)

    def __init__(self, attend: Callable[..., Tensor]) -> None:
        super().__init__()
        self.attend = attend
        self._cast: dict[torch.dtype, tuple[Weights, Callable[..., Tensor]]] = {}
        self._seen_free: dict[tuple[str, int, int], bool] = {}

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
        q, k, v = observed.tokens(self._sizes)
        ones = torch.ones_like(v)
        try:
            return observed.alike(self(q, k, ones, causal=self.causality is Causality.ALWAYS), ones)
        except Exception:
            return False

    @property
    def normalised(self) -> bool:
        """Whether the weights added up to 1 on seeded tokens, unless it says so itself."""
        return self._adds_up if self.said_normalised is None else self.said_normalised

    def order_free(self, length: int, width: int) -> bool:
        """Whether the order of so many tokens was nothing to it, on seeded ones, unless it says so itself."""
        return self.permutation_equivariant or self._free(observed.minds_no_order, length, width)

    def free_of_coordinates(self, length: int, width: int) -> bool:
        """Whether the order of coordinates was nothing to it, on seeded tokens, unless it says so itself."""
        return self.coordinate_free or self._free(observed.minds_no_coordinates, length, width)

    def _free(
        self, seen: Callable[[observed.Attend, observed.Sizes, int], bool], length: int, width: int
    ) -> bool:
        if self.causality is Causality.ALWAYS or length > LONGEST_SEEN:
            return False
        key = (seen.__name__, length, width)
        if key not in self._seen_free:
            sizes = observed.Sizes(width, self.fixed_features or width, self.fixed_heads)
            self._seen_free[key] = seen(self._plain, sizes, length)
        return self._seen_free[key]

    @property
    def _sizes(self) -> observed.Sizes:
        return observed.Sizes(self.fixed_width, self.fixed_features, self.fixed_heads)

    def _plain(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention as it is without a word on `causal`, or with False."""
        with torch.no_grad():
            return self._called(q, k, v, {self.flag: False} if self.flag else {})

    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_request(self, counts, causal)
        first, present = more.pop("first", 0), more.pop("present", None)
        for name in more:
            if name not in self.takes_by_name:
                raise UsageError(f"{self.spelled} does not take {name}")
        return placed(
            self,
            lambda q, k, v, counts, options, given: self._attended(q, k, v, counts, causal, options, given),
            *(q, k, v, counts, causal, first, present, more),
        )

    __call__ = definition

    def _attended(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        counts: Tensor | None,
        causal: bool,
        options: dict[str, Any],
        given: dict[str, Any],
    ) -> Tensor:
        declared = {extra.name for extra in self.extras}
        known = filled(self, q, k, v, {name: x for name, x in given.items() if name in declared})
        options = {**options, **given, **known}
        if counts is not None:
            options["counts"] = counts
        if self.flag:
            options[self.flag] = causal
        try:
            return self._called(q, k, v, options)
        except Exception as error:
            other = self._other_sizes(q, v)
            if not other:
                raise
            why = f"{type(error).__name__}: {one_line(error, 90)}"
            raise UsageError(f"{self.name} takes {other} ({why})") from None

    def _other_sizes(self, q: Tensor, v: Tensor) -> str:
        """In which sizes tokens differ from those that it takes, in words."""
        sizes = (
            ("width", self.fixed_width, q.shape[-1]),
            ("features", self.fixed_features, v.shape[-1]),
            ("heads", self.fixed_heads, q.shape[1]),
        )
        return " and ".join(
            f"{noun} {fixed}, not {given}" for noun, fixed, given in sizes if fixed not in (None, given)
        )

    def _called(self, q: Tensor, k: Tensor, v: Tensor, options: dict[str, Any]) -> Tensor:
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
        return self.attend if self.trains else self._copy(dtype)

    def _copy(self, dtype: torch.dtype) -> Callable[..., Tensor]:
        """A copy of a module, in evaluation: what is tried on it leaves the module as it is."""
        if not isinstance(self.attend, torch.nn.Module):
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
    flag = next((each for each in FLAGS if each in known), "")
    variables = {
        "name": name,
        "source": str(getattr(attend, "__module__", type(attend).__module__)),
        "causality": Causality.EITHER if flag else Causality.NEVER,
        "takes_counts": "counts" in known,
        "takes_first": "first" in known,
        "takes_present": "present" in known,
        "takes_by_name": frozenset(known.difference(OPTIONS)),
        "extras": tuple(_declared(attend, name, known)),
        "flag": flag,
        "__doc__": inspect.getdoc(attend),
        "__module__": __name__,
    }
    said = _said(attend, name)
    made: type[CustomMechanism] = type("CustomMechanism", (CustomMechanism,), {**variables, **said})
    return made(attend)


def of_width(mechanism: Mechanism, width: int) -> Mechanism:
    """A callable of one's own that takes tokens of this width alone."""
    if not isinstance(mechanism, CustomMechanism):
        raise UsageError(f"{mechanism.spelled} takes tokens of any width; leave it out")
    made = type(mechanism)
    made.looked_at, made.fixed_width, made.fixed_features = True, width, None
    _look_at(mechanism, _said(mechanism.attend, mechanism.name))
    if not observed.attends(mechanism._copy(torch.float64), mechanism._sizes):
        raise UsageError(f"{mechanism.name} does not take tokens of width {width}")
    return mechanism


def _said(attend: Any, name: str) -> dict[str, Any]:
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


def _look_at(mechanism: CustomMechanism, said: dict[str, Any]) -> None:
    """Find out, on a few seeded tokens, what a callable did not say."""
    made, flag, attend = type(mechanism), mechanism.flag, mechanism._copy(torch.float64)
    back, ahead = (partial(attend, **{flag: causal}) if flag else attend for causal in (True, False))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        sizes = observed.sizes_taken(back, mechanism.attend, mechanism._sizes)
        if flag and not observed.attends(back, sizes):
            sizes = observed.sizes_taken(ahead, mechanism.attend, mechanism._sizes)
        made.fixed_width, made.fixed_features, made.fixed_heads = sizes.width, sizes.features, sizes.heads
        if "causality" not in said and observed.only_looks_back(ahead, sizes):
            made.causality = Causality.ALWAYS
        elif "causality" not in said and flag:
            refused = [observed.refuses(each, sizes) for each in (back, ahead)]
            if refused == [True, False]:
                made.causality = Causality.NEVER
            elif refused == [False, True]:
                made.causality = Causality.ALWAYS
        usual = back if made.causality is Causality.ALWAYS else ahead
        if made.takes_counts and observed.attends(usual, sizes):
            times = torch.ones(observed.LENGTH, dtype=torch.float64)
            made.takes_counts = not observed.refuses(partial(usual, counts=times), sizes)
        if "linear_in_values" not in said:
            made.linear_in_values = observed.is_linear_in_values(usual, sizes)


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
