"""A user's own attention, given as a callable or an nn.Module, as a mechanism."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property, partial
from itertools import product
from typing import Any, ClassVar

from separatrix.core.errors import WrongResult, annotate_user_error, describe_failure, one_line
from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Tensor, torch
from separatrix.mechanisms import observed
from separatrix.mechanisms._base import Mechanism
from separatrix.mechanisms._methods import fill_extras
from separatrix.mechanisms._positions import Causality, LastQueryMode, call_with_positions, check_request
from separatrix.mechanisms._types import Attended, CallOptions, Counts, Keys, Queries, Values
from separatrix.mechanisms.drawn_weights import draw, usual_seed
from separatrix.mechanisms.fitted import Fitted
from separatrix.mechanisms.how_called import HowCalled, describe_call, is_lazy, prepare_callable, require_result
from separatrix.mechanisms.signatures import FLAGS, OPTIONS, declared_extras, keyword_names, read_declarations
from separatrix.mechanisms.weights import held_by, mark

Weights = tuple[tuple[int, int], ...]
"""Where the numbers of a module lie, and how often they have changed there."""
POSITIONS = ("first", "present")
"""The options that are emulated for callables that do not take them."""
MAX_OBSERVED_LENGTH = 1 << 13
"""The effect of an order is not measured on more tokens than this."""

HAS_WEIGHTS = (
    "is made already, so a seed would change nothing; name the class, or a function that makes it, or call "
    "torch.manual_seed before it is made"
)


class Probed:
    """A property of a callable that is measured by calling it.

    At the first access all of them are measured, and become plain attributes. Not earlier: a call may never return
    or end the process, and only the processes that compute with a mechanism expect that.
    """

    def __init__(self, default: Any) -> None:
        self.default = default
        """The value until it is measured."""

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, mechanism: CustomMechanism | None, _: type | None = None) -> Any:
        if mechanism is None:
            return self
        mechanism.probe()
        return vars(mechanism)[self._name]


class CustomMechanism(Mechanism):
    """A callable as a mechanism: it is its own definition, with the properties that it declares or that show.

    Properties are declared by the attributes in `signatures.SAYS`; the others are measured once, when the
    first of them is needed, on a few seeded tokens. A module is copied, set to evaluation, and cast to the dtype
    of the values. A callable that does not take `first` gets queries of zeros before the others, and one that
    does not take `present` each element of the batch cut to its present tokens. Inputs that it declares as
    `extras` (a tuple of `Extra`) are known to the contract and to layers; other inputs that it takes by name
    are passed as given.

    **Arguments:**

    - `how`: sizes, scale and seed, as in `HowCalled`.
    - `made_with`: the arguments of the class or function that the callable is from.
    - `trains`: whether a module is called itself, and not as a copy.
    """

    family = "custom"
    schema = HowCalled
    parameters: HowCalled
    formula = "as programmed"
    permutation_equivariant = False
    streams = False
    answers_few = False
    twice_differentiable = None
    said_normalised: bool | None = None
    fixed_width: ClassVar[Any] = Probed(None)
    fixed_features: ClassVar[Any] = Probed(None)
    fixed_heads: ClassVar[Any] = Probed(None)
    causality: ClassVar[Any] = Probed(Causality.EITHER)
    takes_counts: Any = Probed(False)
    linear_in_values: ClassVar[Any] = Probed(True)
    flat: Any = Probed(False)
    """Whether it takes tokens without heads, (batch, tokens, width)."""

    def __init__(
        self, attend: Any, name: str, how: Mapping[str, object], made_with: Mapping[str, str], trains: bool = False
    ) -> None:
        self.parameters = HowCalled.read({"seed": usual_seed(), **how} if is_lazy(attend) else how, name)
        attend = prepare_callable(attend, name, self.parameters)
        self.attend: Callable[..., Tensor] = attend
        self.made_with, self.trains = dict(made_with), trains
        self._cast: dict[torch.dtype, tuple[Weights, Callable[..., Tensor]]] = {}
        self._observations: dict[tuple[str, int, int], bool] = {}
        names = keyword_names(attend, name)
        self.flag = next((flag for flag in FLAGS if flag in names), "")
        """The name of its parameter for causal attention; empty if it has none."""
        self.takes_by_name = names.difference(OPTIONS)
        declared = read_declarations(attend, name)
        if self.parameters.width is not None:
            declared.update(fixed_width=self.parameters.width, fixed_features=None)
        if self.parameters.heads is not None:
            declared["fixed_heads"] = self.parameters.heads
        self._declared = declared
        self._may_take_counts = "counts" in names
        properties = {key: value for key, value in declared.items() if not isinstance(getattr(type(self), key), Probed)}
        # Class variables of other mechanisms are variables of the instance here.
        vars(self).update(
            name=name,
            source=str(getattr(attend, "__module__", type(attend).__module__)),
            takes_first="first" in names,
            takes_present="present" in names,
            extras=declared_extras(attend, name, names),
            **properties,
        )

    def probe(self) -> None:
        """Measure sizes, causality, counts and linearity on a few seeded tokens."""
        unmeasured = {key: value.default for key, value in vars(type(self)).items() if isinstance(value, Probed)}
        vars(self).update(unmeasured | {key: self._declared[key] for key in unmeasured.keys() & self._declared})
        try:
            self._measure()
        except BaseException:  # an interrupt: nothing may be taken as measured
            for name in unmeasured:
                vars(self).pop(name, None)
            raise

    def _measure(self) -> None:
        # A copy, also where the module itself is trained: probing must not change it.
        attend = partial(self._invoke, self._copy(torch.float64))
        flags: list[dict[str, bool]] = [{self.flag: True}, {self.flag: False}] if self.flag else [{}, {}]
        causal, bidirectional = (partial(attend, **flag) for flag in flags)
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            sizes = self._find_sizes([causal, bidirectional] if self.flag else [bidirectional])
            causality = self._declared.get("causality") or self._find_causality(causal, bidirectional, sizes)
            form = causal if causality is Causality.ALWAYS else bidirectional
            takes_counts = self._may_take_counts and not self.flat
            if takes_counts and observed.attends(form, sizes):
                counts = torch.ones(observed.LENGTH, dtype=torch.float64)
                takes_counts = not observed.refuses(partial(form, counts=counts), sizes)
            is_linear = self._declared.get("linear_in_values")
            vars(self).update(
                fixed_width=sizes.width,
                fixed_features=sizes.features,
                fixed_heads=sizes.heads,
                causality=causality,
                takes_counts=takes_counts,
                linear_in_values=observed.is_linear_in_values(form, sizes) if is_linear is None else is_linear,
            )

    def _find_sizes(self, forms: Sequence[observed.Attend]) -> observed.Sizes:
        """Return the first sizes that one of the forms takes, with or without heads; else those declared."""
        for flat, form in product((False, True), forms):
            self.flat = flat
            if sizes := observed.find_sizes(form, self.attend, self._sizes):
                return sizes
        self.flat = False
        return self._sizes

    def _find_causality(
        self, causal: observed.Attend, bidirectional: observed.Attend, sizes: observed.Sizes
    ) -> Causality:
        if observed.is_causal(bidirectional, sizes):
            return Causality.ALWAYS
        if not self.flag:
            return Causality.NEVER
        refusals = observed.refuses(causal, sizes), observed.refuses(bidirectional, sizes)
        return {(True, False): Causality.NEVER, (False, True): Causality.ALWAYS}.get(refusals, Causality.EITHER)

    def __reduce__(self) -> tuple[Any, ...]:
        how = self.parameters.non_default_values()
        return CustomMechanism, (self.attend, self.name, how, self.made_with, self.trains)

    @property
    def typed(self) -> str:
        """The mechanism as it is named on the command line, `mine:attend:width=64`."""
        options = {**self.made_with, **self.parameters.non_default_values()}
        words = ",".join(f"{name}={value}" for name, value in options.items())
        return f"{self.name}:{words}" if words else self.name

    @property
    def spelled(self) -> str:
        """As it is typed, and a mark of its weights: `mine:Module:seed=0@0123456789ab`."""
        return self.typed + mark(self.held_weights)

    @property
    def held_weights(self) -> dict[str, Any]:
        return held_by(self.attend)

    def trained(self) -> CustomMechanism:
        """Return the same mechanism, but a module is called itself and not as a copy: its weights get gradients."""
        return CustomMechanism(self.attend, self.name, self.parameters.non_default_values(), self.made_with, True)

    @cached_property
    def attend_any_size(self) -> Fitted:
        """The mechanism for tokens of any size, which are made to fit."""
        return Fitted(self)

    @property
    def resizing_error_factor(self) -> float:
        """The factor by which undoing a map of values magnifies rounding errors."""
        values = self.attend_any_size.values
        return 1.0 if values is None else values.error_factor

    @cached_property
    def is_normalised(self) -> bool:
        """Whether the weights added up to 1 on seeded tokens, unless it is declared."""
        if self.said_normalised is not None:
            return self.said_normalised
        q, k, v = observed.tokens(self._sizes)
        ones = torch.ones_like(v)
        try:
            return observed.is_close(self.usual(q, k, ones), ones)
        except Exception:
            return False

    def order_free(self, length: int, width: int) -> bool:
        """Return whether the order of seeded tokens had no effect, unless it is declared."""
        return self.permutation_equivariant or self._sees_all(observed.has_no_order, length, width)

    def free_of_coordinates(self, length: int, width: int) -> bool:
        """Return whether the order of coordinates had no effect on seeded tokens, unless it is declared."""
        return self.coordinate_free or self._sees_all(observed.has_no_coordinate_order, length, width)

    def past_order_free(self, length: int, width: int) -> bool:
        """Return `order_free`; if it only looks back, whether its last output did not depend on the order."""
        if self.causality is not Causality.ALWAYS:
            return self.order_free(length, width)
        return self._observe(observed.has_no_past_order, length, width)

    def last_query_mode(self, length: int, width: int) -> LastQueryMode:
        """Return how a query after so many tokens may be asked alone, measured on seeded ones."""
        if self._observe(observed.gives_last_alone, length, width):
            return LastQueryMode.ALONE
        if self._observe(observed.gives_last_reversed, length, width):
            return LastQueryMode.REVERSED
        return LastQueryMode.AFTER_OTHERS

    @cached_property
    def holds_scores(self) -> bool:
        """Whether it made a tensor with a number for each query and key, on seeded tokens."""
        with torch.no_grad():
            return observed.holds_scores(self.usual, self._sizes)

    def _sees_all(self, check: observed.Check, length: int, width: int) -> bool:
        return self.causality is not Causality.ALWAYS and self._observe(check, length, width)

    def _observe(self, check: observed.Check, length: int, width: int) -> bool:
        """Return the result of a check at this size, which is made once."""
        if length > MAX_OBSERVED_LENGTH:
            return False
        key = (check.__name__, length, width)
        if key not in self._observations:
            attend = partial(self.attend_any_size, causal=self.causality is Causality.ALWAYS)
            with torch.no_grad():
                allowed = observed.ROUNDINGS * self.resizing_error_factor
                self._observations[key] = check(attend, observed.Sizes(width, width, 1), length, allowed)
        return self._observations[key]

    @property
    def _sizes(self) -> observed.Sizes:
        return observed.Sizes(self.fixed_width, self.fixed_features, self.fixed_heads)

    def usual(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Attend to all keys, or, if it only looks back, to those before."""
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
            annotate_user_error(error, self.spelled, describe_call(q, k, v, named), k.shape[-2])
            other = self._other_sizes(q, v)
            if not other:
                raise
            why = f"{type(error).__name__}: {one_line(error, 90)}"
            raise UsageError(f"{self.name} takes {other} ({why})") from None

    def _other_sizes(self, q: Tensor, v: Tensor) -> str:
        """Return the sizes in which tokens differ from those that it takes, in words."""
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
        """Return a copy of a module in evaluation mode, so that calls leave the module as it is."""
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
    """Return a mechanism from a Mechanism, which is returned as it is, or from a callable of SIGNATURE.

    `how` has the width, heads and scale of a call, measured if they are not given, and the `seed` of the weights
    of a class, which is instantiated here.

    >>> wrap(lambda q, k, v: (q @ k.mT).softmax(-1) @ v, "mine").takes_counts
    False
    """
    if isinstance(attend, Mechanism):
        return attend
    options, name = dict(how or {}), str(name or getattr(attend, "__name__", type(attend).__name__))
    if isinstance(attend, type):
        try:
            instance, options = draw(attend, name, options)
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(f"{attend.__name__} is a class; give an instance ({error})") from None
        if isinstance(instance, Mechanism):
            return instance
        return CustomMechanism(instance, name, options, made_with or {})
    if "seed" in options and not is_lazy(attend):
        raise UsageError(f"{name} {HAS_WEIGHTS}")
    return CustomMechanism(attend, name, options, made_with or {})


def with_call_options(mechanism: Mechanism, how: Mapping[str, object]) -> CustomMechanism:
    """Return a user's callable with this width, heads and scale.

    >>> attend = wrap(lambda q, k, v: (q @ k.mT).softmax(-1) @ v, "mine")
    >>> with_call_options(attend, {"scale": "sqrt"}).spelled
    'mine:scale=sqrt'
    """
    if not isinstance(mechanism, CustomMechanism):
        takes = {"scale": "takes logits as they are", "seed": "is not made with a seed of weights"}
        what = takes.get(next(iter(how)), "takes tokens of any width and heads")
        raise UsageError(f"{mechanism.spelled} {what}; leave {', '.join(how)} out")
    if "seed" in how:
        raise UsageError(f"{mechanism.name} {HAS_WEIGHTS}")
    chosen = {**mechanism.parameters.non_default_values(), **how}
    return CustomMechanism(mechanism.attend, mechanism.name, chosen, mechanism.made_with)


def require_sizes(mechanism: Mechanism, requested: Mapping[str, object]) -> Mechanism:
    """Return the mechanism if it can be called with the requested sizes, or raise a UsageError."""
    assert isinstance(mechanism, CustomMechanism)
    sizes = " and ".join(f"{name} {requested[name]}" for name in ("width", "heads") if name in requested)
    try:
        mechanism.usual(*observed.tokens(mechanism._sizes))
    except Exception as error:
        if not sizes:
            return mechanism
        raise UsageError(f"calling {mechanism.name} with {sizes} failed: it {describe_failure(error)}") from None
    return mechanism
