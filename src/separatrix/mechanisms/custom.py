"""A user's own attention, given as a callable or an nn.Module, as a mechanism."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cached_property, partial
from typing import Any, ClassVar

from separatrix.core.errors import WrongResult, annotate_user_error, describe_failure, one_line
from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Tensor, torch
from separatrix.mechanisms import observed
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._methods import fill_extras
from separatrix.mechanisms._positions import CallOptions, Causality, LastQueryMode, call_with_positions, check_request
from separatrix.mechanisms._types import Attended, Counts, Keys, Queries, Values
from separatrix.mechanisms.drawn_weights import draw, usual_seed
from separatrix.mechanisms.fitted import Fitted
from separatrix.mechanisms.how_called import HowCalled, described_call, is_lazy, ready, require_result
from separatrix.mechanisms.signatures import FLAGS, OPTIONS, declared_extras, said_by, taken_by_name
from separatrix.mechanisms.weights import held_by, mark

Weights = tuple[tuple[int, int], ...]
"""Where the numbers of a module lie, and how often they have changed there."""
POSITIONS = ("first", "present")
"""The options that are emulated for callables that do not take them."""
LONGEST_SEEN = 1 << 13
"""On more tokens than this nothing is tried out."""

HAS_WEIGHTS = (
    "is made already, so a seed would change nothing; name the class, or a function that makes it, or call "
    "torch.manual_seed before it is made"
)

PROBED = ("fixed_width", "fixed_features", "fixed_heads", "causality", "takes_counts", "linear_in_values")
"""The properties that are measured by calling a callable, unless it declares them."""


class _ProbedProperty:
    """A property in PROBED that is measured when it is first read: plans name callables without calling them.

    The measured values replace these descriptors in the class, so that later reads cost nothing.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, mechanism: CustomMechanism, owner: type[CustomMechanism]) -> Any:
        _probe(mechanism)
        return getattr(mechanism, self.name)


class CustomMechanism(Mechanism):
    """A callable as a mechanism: it is its own definition, and claims nothing that was not said or seen.

    A module is copied, set to evaluation, and cast to the dtype of the values it is given. One that does not
    take `first` gets queries of zeros before the others, and one that does not take `present` each element of
    the batch cut to its present tokens. Of what else it takes by name, what it declares as `extras` (a tuple
    of `Extra`) is known to the contract and to layers; the rest is passed as given. What it does not
    keep, or keeps, it says by attributes: those in SAYS.
    """

    family = "custom"
    schema = HowCalled
    parameters: HowCalled
    made_with: ClassVar[Mapping[str, str]] = {}
    """The words that a class was made with, or a function is given besides."""
    flat: ClassVar[bool] = False
    """Whether it takes tokens without heads, (batch, tokens, width)."""
    formula = "as programmed"
    permutation_equivariant = False
    streams = False
    answers_few = False
    takes_by_name: ClassVar[frozenset[str]]
    trains: bool = False
    """Whether a module is called itself, and not as a copy."""
    twice_differentiable = None
    flag: ClassVar[str]
    """What its parameter for causal attention is called; empty if it has none."""
    said_normalised: ClassVar[bool | None] = None
    declared: ClassVar[Mapping[str, Any]] = {}
    """The properties in PROBED that the callable declares."""
    signature_counts: ClassVar[bool] = False
    """Whether its signature has `counts`; it may refuse them all the same."""

    def __init__(self, attend: Callable[..., Tensor], **how: object) -> None:
        super().__init__(**how)
        self.attend = attend
        self._cast: dict[torch.dtype, tuple[Weights, Callable[..., Tensor]]] = {}
        self._seen_free: dict[tuple[str, int, int], bool] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        how = (self.attend, self.name, self.parameters.non_default_values(), self.made_with)
        return _trained if self.trains else wrapped, how

    @property
    def typed(self) -> str:
        """The mechanism as it is named on the command line, `mine:attend:width=64`."""
        words = ",".join(
            f"{name}={value}" for name, value in {**self.made_with, **self.parameters.non_default_values()}.items()
        )
        return f"{self.name}:{words}" if words else self.name

    @property
    def spelled(self) -> str:
        """As it is typed, and a mark of its weights: `mine:Module:seed=0@0123456789ab`."""
        return self.typed + mark(self.held_weights)

    @property
    def held_weights(self) -> dict[str, Any]:
        return held_by(self.attend)

    def trained(self) -> CustomMechanism:
        """The same, but that a module is called itself and not as a copy: gradients reach its weights."""
        return _trained(self.attend, self.name, self.parameters.non_default_values(), self.made_with)

    @cached_property
    def attend_any_size(self) -> Fitted:
        """The same, but that tokens of other sizes than its own are made to fit."""
        return Fitted(self)

    @property
    def resizing_error_factor(self) -> float:
        """How many times undoing a map of values magnifies rounding."""
        return self.attend_any_size.magnified

    @cached_property
    def _adds_up(self) -> bool:
        q, k, v = observed.tokens(self._sizes)
        ones = torch.ones_like(v)
        try:
            return observed.alike(self(q, k, ones, causal=self.causality is Causality.ALWAYS), ones)
        except Exception:
            return False

    @property
    def is_normalised(self) -> bool:
        """Whether the weights added up to 1 on seeded tokens, unless it says so itself."""
        return self._adds_up if self.said_normalised is None else self.said_normalised

    def order_free(self, length: int, width: int) -> bool:
        """Whether the order of so many tokens was nothing to it, on seeded ones, unless it says so itself."""
        return self.permutation_equivariant or self._free(observed.minds_no_order, length, width)

    def free_of_coordinates(self, length: int, width: int) -> bool:
        """Whether the order of coordinates was nothing to it, on seeded tokens, unless it says so itself."""
        return self.coordinate_free or self._free(observed.minds_no_coordinates, length, width)

    def past_order_free(self, length: int, width: int) -> bool:
        """As `order_free`; of one that only looks back, whether its last result minded no order."""
        if self.causality is not Causality.ALWAYS:
            return self.order_free(length, width)
        return self._seen(observed.minds_no_order_before, length, width)

    def last_query_mode(self, length: int, width: int) -> LastQueryMode:
        """How a query after so many tokens may be asked alone, as was seen on seeded ones."""
        if self._seen(observed.last_alone, length, width):
            return LastQueryMode.ALONE
        if self._seen(observed.last_reversed, length, width):
            return LastQueryMode.REVERSED
        return LastQueryMode.AFTER_OTHERS

    @cached_property
    def holds_scores(self) -> bool:
        """Whether it made a tensor with a number for each query and key, on seeded tokens."""
        with torch.no_grad():
            return observed.holds_scores(self.usual, self._sizes)

    def _free(
        self, seen: Callable[[observed.Attend, observed.Sizes, int, float], bool], length: int, width: int
    ) -> bool:
        return self.causality is not Causality.ALWAYS and self._seen(seen, length, width)

    def _seen(
        self, seen: Callable[[observed.Attend, observed.Sizes, int, float], bool], length: int, width: int
    ) -> bool:
        if length > LONGEST_SEEN:
            return False
        key = (seen.__name__, length, width)
        if key not in self._seen_free:
            attend = partial(self.attend_any_size, causal=self.causality is Causality.ALWAYS)
            with torch.no_grad():
                allowed = observed.ROUNDINGS * self.resizing_error_factor
                self._seen_free[key] = seen(attend, observed.Sizes(width, width, 1), length, allowed)
        return self._seen_free[key]

    @property
    def _sizes(self) -> observed.Sizes:
        return observed.Sizes(self.fixed_width, self.fixed_features, self.fixed_heads)

    def usual(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attention to all keys, or, where it only looks back, to those before."""
        return self(q, k, v, causal=self.causality is Causality.ALWAYS)

    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        check_request(self, counts, causal)
        for name in more:
            if name not in self.takes_by_name and name not in POSITIONS:
                raise UsageError(f"{self.spelled} does not take {name}")
        # Most calls have no positions. They skip that layer: fewer frames in the user's traceback, less time.
        if not any(name in more for name in POSITIONS):
            return self._call(q, k, v, CallOptions(counts, causal), more)
        options = CallOptions(counts, causal, more.pop("first", 0), more.pop("present", None))
        return call_with_positions(self, self._call, q, k, v, options, more)

    __call__ = definition

    def _call(self, q: Tensor, k: Tensor, v: Tensor, options: CallOptions, more: dict[str, Any]) -> Tensor:
        """Call the callable and check its result; an error is annotated with the call."""
        named = {**options.positions(), **more}
        if self.extras:
            declared = {extra.name: more[extra.name] for extra in self.extras if extra.name in more}
            named |= fill_extras(self, q, k, v, declared)
        if options.counts is not None:
            named["counts"] = options.counts
        if self.flag:
            named[self.flag] = options.causal
        try:
            out = self._invoke(self.attend if self.trains else self._copy(v.dtype), q, k, v, **named)
            require_result(out, (*q.shape[:-1], v.shape[-1]), v.dtype)
            return out  # type: ignore[no-any-return]
        except Exception as error:
            annotate_user_error(error, self.spelled, described_call(q, k, v, named), k.shape[-2])
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

    def _invoke(self, attend: Callable[..., Any], q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Any:
        """Return the output of a callable, or the first of several, with scaled queries and with heads."""
        if self.parameters.scale is not None:
            q = q * self.parameters.factor(q.shape[-1])
        inputs = [x.flatten(0, 1) for x in (q, k, v)] if self.flat else [q, k, v]
        try:
            out = attend(*inputs, **options)
        except SystemExit as error:
            raise WrongResult(f"tried to end the program: sys.exit({error.code!r})") from None
        out = out[0] if isinstance(out, tuple) and out else out
        if self.flat and isinstance(out, torch.Tensor) and out.ndim == 3:
            return out.reshape(*q.shape[:2], *out.shape[1:])
        return out

    def _copy(self, dtype: torch.dtype) -> Callable[..., Tensor]:
        """A copy of a module, in evaluation: what is tried on it leaves the module as it is."""
        if not isinstance(self.attend, torch.nn.Module):
            return self.attend
        tensors = (*self.attend.parameters(), *self.attend.buffers())
        weights = tuple((tensor.data_ptr(), tensor._version) for tensor in tensors)
        if dtype not in self._cast or self._cast[dtype][0] != weights:
            self._cast[dtype] = weights, deepcopy(self.attend).eval().to(dtype)
        return self._cast[dtype][1]


def wrap(
    attend: Any,
    name: str | None = None,
    how: Mapping[str, object] | None = None,
    made_with: Mapping[str, str] | None = None,
) -> Mechanism:
    """A mechanism from anything that attends: a Mechanism as it is, or a callable of SIGNATURE.

    `how` it is called, width, heads and scale, is found out where it is not given; of a class that is made
    here, `seed` is that of its weights.

    >>> wrap(lambda q, k, v: (q @ k.mT).softmax(-1) @ v, "mine").takes_counts
    False
    """
    if isinstance(attend, Mechanism):
        return attend
    given, name = dict(how or {}), str(name or getattr(attend, "__name__", type(attend).__name__))
    if isinstance(attend, type):
        try:
            made, given = draw(attend, name, given)
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(f"{attend.__name__} is a class; give an instance ({error})") from None
        return made if isinstance(made, Mechanism) else wrapped(made, name, given, made_with or {})
    if "seed" in given and not is_lazy(attend):
        raise UsageError(f"{name} {HAS_WEIGHTS}")
    return wrapped(attend, name, given, made_with or {})


def wrapped(attend: Any, name: str, how: Mapping[str, object], made_with: Mapping[str, str]) -> CustomMechanism:
    """The mechanism of a callable that is made; a seed in `how` is the one its weights were drawn with."""
    call = HowCalled.read({"seed": usual_seed(), **how} if is_lazy(attend) else how, name)
    attend = ready(attend, name, call)
    names = taken_by_name(attend, name)
    flag = next((flag for flag in FLAGS if flag in names), "")
    declared = said_by(attend, name)
    if call.width is not None:
        declared.update(fixed_width=call.width, fixed_features=None)
    if call.heads is not None:
        declared["fixed_heads"] = call.heads
    variables = {
        "name": name,
        "source": str(getattr(attend, "__module__", type(attend).__module__)),
        "takes_first": "first" in names,
        "takes_present": "present" in names,
        "takes_by_name": frozenset(names.difference(OPTIONS)),
        "extras": tuple(declared_extras(attend, name, names)),
        "flag": flag,
        "made_with": dict(made_with),
        "__doc__": inspect.getdoc(attend),
        "__module__": __name__,
        **declared,
        **{name: _ProbedProperty(name) for name in PROBED},
        "declared": {name: value for name, value in declared.items() if name in PROBED},
        "signature_counts": "counts" in names,
    }
    made: type[CustomMechanism] = type("CustomMechanism", (CustomMechanism,), variables)
    return made(attend, **call.non_default_values())


def called_with(mechanism: Mechanism, how: Mapping[str, object]) -> CustomMechanism:
    """A callable of one's own, called with this width, these heads, this scale.

    >>> attend = wrap(lambda q, k, v: (q @ k.mT).softmax(-1) @ v, "mine")
    >>> called_with(attend, {"scale": "sqrt"}).spelled
    'mine:scale=sqrt'
    """
    if not isinstance(mechanism, CustomMechanism):
        takes = {"scale": "takes logits as they are", "seed": "is not made with a seed of weights"}
        what = takes.get(next(iter(how)), "takes tokens of any width and heads")
        raise UsageError(f"{mechanism.spelled} {what}; leave {', '.join(how)} out")
    if "seed" in how:
        raise UsageError(f"{mechanism.name} {HAS_WEIGHTS}")
    chosen = {**mechanism.parameters.non_default_values(), **how}
    return wrapped(mechanism.attend, mechanism.name, chosen, mechanism.made_with)


def tried(mechanism: Mechanism, asked: Mapping[str, object]) -> Mechanism:
    """The mechanism, if it can be called with the sizes that were asked for, or a UsageError with why not."""
    assert isinstance(mechanism, CustomMechanism)
    sizes = " and ".join(f"{name} {asked[name]}" for name in ("width", "heads") if name in asked)
    try:
        mechanism.usual(*observed.tokens(mechanism._sizes))
    except Exception as error:
        if not sizes:
            return mechanism
        raise UsageError(f"calling {mechanism.name} with {sizes} failed: it {describe_failure(error)}") from None
    return mechanism


def _probe(mechanism: CustomMechanism) -> None:
    """Measure the properties in PROBED that a callable does not declare, on a few seeded tokens."""
    probed, flag, declared = type(mechanism), mechanism.flag, mechanism.declared
    # Probing reads these properties itself, so they need values before.
    usual: dict[str, Any] = {"fixed_width": None, "fixed_features": None, "fixed_heads": None, "linear_in_values": True}
    usual["causality"] = Causality.EITHER if flag else Causality.NEVER
    for name, value in {**usual, "takes_counts": mechanism.signature_counts, **declared}.items():
        setattr(probed, name, value)
    # A copy, also where the module itself is trained: probing must not change it.
    attend = partial(mechanism._invoke, mechanism._copy(torch.float64))
    causal, bidirectional = (partial(attend, **{flag: value}) if flag else attend for value in (True, False))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        sizes = None
        for flat in (False, True):
            probed.flat = flat
            for form in (causal, bidirectional) if flag else (bidirectional,):
                sizes = sizes or observed.sizes_taken(form, mechanism.attend, mechanism._sizes)
            if sizes is not None:
                break
        else:
            probed.flat = False
        sizes = sizes or mechanism._sizes
        probed.fixed_width, probed.fixed_features, probed.fixed_heads = (sizes.width, sizes.features, sizes.heads)
        if "causality" not in declared and observed.only_looks_back(bidirectional, sizes):
            probed.causality = Causality.ALWAYS
        elif "causality" not in declared and flag:
            refusals = [observed.refuses(form, sizes) for form in (causal, bidirectional)]
            if refusals == [True, False]:
                probed.causality = Causality.NEVER
            elif refusals == [False, True]:
                probed.causality = Causality.ALWAYS
        form = causal if probed.causality is Causality.ALWAYS else bidirectional
        if probed.flat:
            probed.takes_counts = False
        if probed.takes_counts and observed.attends(form, sizes):
            counts = torch.ones(observed.LENGTH, dtype=torch.float64)
            probed.takes_counts = not observed.refuses(partial(form, counts=counts), sizes)
        if "linear_in_values" not in declared:
            probed.linear_in_values = observed.is_linear_in_values(form, sizes)


def _trained(attend: Any, name: str, how: Mapping[str, object], made_with: Mapping[str, str]) -> CustomMechanism:
    made = wrapped(attend, name, how, made_with)
    made.trains = True
    return made
