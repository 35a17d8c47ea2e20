"""Claims notice sabotage of what they state: every kind of row, in both forms, for either label."""

from __future__ import annotations

import inspect
import math
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import pytest

from expectations import assert_fails
from separatrix.claims import (
    ClaimStatus,
    arithmetic,
    boundary,
    claim_named,
    logit_scale,
    margins,
    plain,
    proof,
    retrieval,
    rough,
    signs,
    units,
)
from separatrix.claims import theorem as theorem_claims
from separatrix.claims._tools import spike
from separatrix.constructions import theorem
from separatrix.constructions._base import BlockModel, QueryRow
from separatrix.constructions._blocks import BlockConstruction
from separatrix.constructions.cross import Cross
from separatrix.constructions.dispersion import Dispersion
from separatrix.constructions.location import Location
from separatrix.constructions.majority import Majority
from separatrix.constructions.plain import Plain
from separatrix.constructions.rough import Rough
from separatrix.constructions.spike import Spike
from separatrix.core.numbers.logforms import LogForm, rational
from separatrix.exact.engines import tails, tally
from separatrix.exact.engines.closed import ProbabilityGrid
from separatrix.exact.engines.tally import Tally
from separatrix.exact.engines.thresholds import Thresholds
from separatrix.exact.verdicts import best_threshold, lost_formats
from separatrix.mechanisms import Linear, Power, Softmax, Taylor
from separatrix.mechanisms.kernels.logn_softmax import LogNSoftmax
from separatrix.mechanisms.recurrent.causal_linear import CausalLinear

pytestmark = pytest.mark.exhaustive

BLOCK_MODEL = Spike.block_model.__func__  # type: ignore[attr-defined]
ROWS = {"ones": ("spike", "rest"), "identity": ("spike", "mate", "other")}
FIELDS = ("base", "spike", "mate", "own")
Change = Callable[[QueryRow, Any], list[QueryRow]]


def raise_logit(field: str, by: str) -> Change:
    """A logit larger by a small multiple of log n."""

    def change(row: QueryRow, log_n: Any) -> list[QueryRow]:
        factor = rational(Fraction(by)) if isinstance(log_n, LogForm) else float(by)
        return [replace(row, **{field: getattr(row, field) + factor * log_n})]

    return change


def drop_row(row: QueryRow, log_n: Any) -> list[QueryRow]:
    return []


def break_row(patch: pytest.MonkeyPatch, form: str, label: int, name: str, change: Change) -> None:
    """Change one kind of row of one label in one form, wherever a closed form is made."""

    def wrong(cls: type[Spike], values: Any, log: Any) -> BlockModel:
        model: BlockModel = BLOCK_MODEL(cls, values, log)
        if values["form"] != form:
            return model
        rows = [*model.rows]
        changed_rows = ([row] if row.name != name else change(row, log(values["n"])) for row in rows[label])
        rows[label] = tuple(row for group in changed_rows for row in group)
        return replace(model, rows=(rows[0], rows[1]))

    patch.setattr(Spike, "block_model", classmethod(wrong))


@cache
def enumeration(case: int) -> signs.Enumeration:
    """What literal loops say, which no sabotage of the package changes."""
    mechanism, setting = signs.PINNED[case]
    construction = spike(setting)
    return signs.enumerate_signs(construction, mechanism, construction.n - 1)


def some_point_fails(form: str) -> bool:
    """Whether the claim notices it: at one of its points in this form at the least."""
    return any(
        next(signs.wrong_thresholds(enumeration(i), mechanism, setting), None) is not None
        for i, (mechanism, setting) in enumerate(signs.PINNED)
        if setting["form"] == form
    )


CASES = [
    (form, label, name, field)
    for form, names in ROWS.items()
    for label in (0, 1)
    for name in names
    for field in (*FIELDS, "dropped")
]


@pytest.mark.parametrize(("form", "label", "name", "field"), CASES)
def test_a_wrong_row_is_noticed(form: str, label: int, name: str, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_row(monkeypatch, form, label, name, drop_row if field == "dropped" else raise_logit(field, "0.001"))
    assert some_point_fails(form)


def test_the_point_of_the_claim_fails_with_a_wrong_mate_row(monkeypatch: pytest.MonkeyPatch) -> None:
    (case,) = [
        candidate for candidate in signs.PINNED if candidate[0].name == "linear" and candidate[1]["form"] == "identity"
    ]
    assert signs.pinned_point(*case).holds
    break_row(monkeypatch, "identity", 1, "mate", raise_logit("spike", "0.05"))
    assert not signs.pinned_point(*case).holds


def test_nothing_is_noticed_where_nothing_is_wrong() -> None:
    assert not some_point_fails("ones")
    assert not some_point_fails("identity")


def flatter_softmax(patch: pytest.MonkeyPatch) -> None:
    """Every logit 3 % too small, in balls, in float64 and on tokens."""
    ratio, log_ratio, call = Softmax.ratio, Softmax.log_ratio, Softmax.__call__
    patch.setattr(Softmax, "ratio", lambda self, b, s: ratio(self, b, rational(Fraction(97, 100)) * s))
    patch.setattr(Softmax, "log_ratio", lambda self, b, s: log_ratio(self, b, 0.97 * s))
    patch.setattr(Softmax, "__call__", lambda self, q, *more, **named: call(self, 0.97 * q, *more, **named))


def one_vector_less(patch: pytest.MonkeyPatch) -> None:
    """P of m - 1 sign vectors in the place of m."""
    on_grid = units.on_grid
    patch.setattr(units, "on_grid", lambda *at, m, **more: on_grid(*at, m=[max(k - 1, 1) for k in m], **more))


def lost_a_step_later(patch: pytest.MonkeyPatch) -> None:
    lost_from = margins.lost_from
    patch.setattr(margins, "lost_from", lambda at, unit: {k: n and n + at.step for k, n in lost_from(at, unit).items()})


def one_order_more(patch: pytest.MonkeyPatch) -> None:
    log_ratio = Taylor.log_ratio
    patch.setattr(Taylor, "log_ratio", lambda self, b, s: log_ratio(Taylor(order=self.parameters.order + 1), b, s))


def other_last_column(patch: pytest.MonkeyPatch) -> None:
    matrix = BlockConstruction.matrix

    def wrong(self: BlockConstruction, *more: Any) -> Any:
        tokens = matrix(self, *more).clone()
        tokens[:, -1] *= 1.0001
        return tokens

    patch.setattr(BlockConstruction, "matrix", wrong)


SUBTLE: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "width": one_vector_less,
    "spike-shape": other_last_column,
    "number-formats": lost_a_step_later,
    "taylor-order": one_order_more,
    "dispersion-blind": flatter_softmax,
    "sparse-averaging": flatter_softmax,
    "single-location": flatter_softmax,
}
"""Faults of a few per cent or of one step, besides the coarse ones of the other tests of claims."""


@pytest.mark.parametrize("name", SUBTLE)
def test_a_small_fault_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    SUBTLE[name](monkeypatch)
    assert_fails(claim_named(name))


def test_a_small_fault_of_linear_is_noticed_in_the_plain_case(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(plain.counted_point(n, False).holds for n in plain.COUNTED_SIZES)
    log_ratio = Linear.log_ratio
    monkeypatch.setattr(Linear, "log_ratio", lambda self, b, s: log_ratio(self, b, 1.01 * s))
    assert not all(plain.counted_point(n, False).holds for n in plain.COUNTED_SIZES)


def test_a_small_fault_of_the_repaired_softmax_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert logit_scale.repair_point("logn-softmax", "3/2", 1000).holds
    call = LogNSoftmax.__call__
    monkeypatch.setattr(LogNSoftmax, "__call__", lambda self, q, *more, **named: call(self, 0.97 * q, *more, **named))
    assert not logit_scale.repair_point("logn-softmax", "3/2", 1000).holds


@dataclass(frozen=True)
class Fault:
    """A small change to the text of one function of the package, and the check that has to notice it."""

    owner: Any
    """The module or class that has the function."""
    name: str
    right: str
    wrong: str
    holds: Callable[[], bool]
    """Some points of a claim: True for correct code."""

    def introduce(self, patch: pytest.MonkeyPatch) -> None:
        """Compile the function again with the change, and put it wherever the original is in use."""
        original = inspect.getattr_static(self.owner, self.name)
        function = original
        for attribute in ("fget", "func", "__func__"):  # of a property, a cached property, a class method
            function = getattr(function, attribute, function)
        if inspect.isfunction(function):
            # Of a mechanism, the method within the wrapper of `attention_method`.
            function = inspect.getclosurevars(function).nonlocals.get("method", function)
        source = textwrap.dedent(inspect.getsource(function))
        assert source.count(self.right) == 1
        module = sys.modules[inspect.unwrap(function).__module__]
        names: dict[str, Any] = {}
        exec(source.replace(self.right, self.wrong), vars(module), names)
        replacement = names[self.name]
        if isinstance(replacement, cached_property):
            replacement.__set_name__(self.owner, self.name)
        patch.setattr(self.owner, self.name, replacement)
        if inspect.ismodule(self.owner):
            for module_in_use in [*sys.modules.values()]:
                if module_in_use.__name__.startswith("separatrix") and vars(module_in_use).get(self.name) is original:
                    patch.setattr(module_in_use, self.name, replacement)


def float_engine_is_exact() -> bool:
    """Whether the float64 engine has the enumerated probabilities at all pinned settings of form identity."""
    return all(
        enumeration(i).float_engine_error(mechanism, setting) == 0
        for i, (mechanism, setting) in enumerate(signs.PINNED)
        if setting["form"] == "identity"
    )


COMFORTABLE = theorem_claims.admissible(theorem_claims.THEOREM_SETTINGS[0], 0.01)


def engines_agree_at_the_boundary() -> bool:
    checks = [boundary.engines_agree({**boundary.growing_setting(10**4), "a1": a1}) for a1 in ("0.9", "0.95")]
    return all(check.holds for check in checks)


def failures_are_exact() -> bool:
    return theorem_claims.fractions_point(COMFORTABLE, 0.01).holds


def hypotheses_are_sharp() -> bool:
    return theorem_claims.are_hypotheses_sharp(COMFORTABLE, 0.01)


def equality_is_rejected() -> bool:
    return all(theorem_claims.equality_point(*case).holds for case in theorem_claims.AT_EQUALITY)


def softmax_n_is_least() -> bool:
    return all(
        theorem_claims.softmax_n_point(theorem_claims.admissible(setting, 0.1), 0.1).holds
        for setting in theorem_claims.SOFTMAX_SETTINGS
    )


def linear_n_is_least() -> bool:
    return theorem_claims.searched_n_point("linear").holds


def width_asked_is_literal() -> bool:
    theorem_width = theorem.required_width(0.2, theorem.required_signs(0.01), 0.01)
    return proof.widths_point("0.2", theorem_width, 40).holds


def claim_holds(name: str) -> Callable[[], bool]:
    return lambda: claim_named(name).check().status is not ClaimStatus.FAILS


NOISE = "float(self.noise) * torch.randn"
FAULTS = {
    "own block": Fault(Thresholds, "_bounds", "over - b * sigma", "over + b * sigma", float_engine_is_exact),
    "mates": Fault(Thresholds, "_bounds", "over - b * y_k)", "over)", float_engine_is_exact),
    "mates at the boundary": Fault(Thresholds, "_bounds", "over - b * y_k)", "over)", engines_agree_at_the_boundary),
    "own sign": Fault(Thresholds, "_kind_bounds", "np.maximum(p, -start)", "p", float_engine_is_exact),
    "neurons on D0": Fault(ProbabilityGrid, "fire_d0", "self.m", "self.m - 1", failures_are_exact),
    "neurons on D1": Fault(ProbabilityGrid, "fire_d1", "self.m", "self.m - 1", failures_are_exact),
    "tails": Fault(  # -1/(9 h) for -1/(8 h) in Stirling's series, in a table that is not cached yet
        tails,
        "_table",
        "_central(trials)",
        "_central(trials) * math.exp(1 / (36 * trials))",
        lambda: arithmetic.width_point(Linear(), 5002).holds,
    ),
    "width: log(m)": Fault(theorem, "required_blocks", "log(4 * m)", "log(m)", hypotheses_are_sharp),
    "width: 150": Fault(theorem, "required_blocks", "200", "150", hypotheses_are_sharp),
    "width: 1 + ceil": Fault(theorem, "required_width", "2 +", "1 +", hypotheses_are_sharp),
    "width asked": Fault(theorem, "required_width", "2 +", "1 +", width_asked_is_literal),
    "signs": Fault(theorem, "required_signs", "return m", "return m + 1", hypotheses_are_sharp),
    "a1 - b >= 0.1": Fault(theorem, "hypotheses", "b > Fraction(1, 10)", "b >= Fraction(1, 10)", equality_is_rejected),
    "a1(a1+b+c) >= 1": Fault(
        theorem, "hypotheses", "a1 * (a1 + b + c) > 1", "a1 * (a1 + b + c) >= 1", equality_is_rejected
    ),
    "a0(a0+b+c) <= 1": Fault(
        theorem, "hypotheses", "a0 * (a0 + b + c) < 1", "a0 * (a0 + b + c) <= 1", equality_is_rejected
    ),
    "sufficient n: a0": Fault(theorem, "_is_sufficient", "(a0 + b) *", "a0 *", softmax_n_is_least),
    "sufficient n: 2b/(n-1)": Fault(
        theorem, "_is_sufficient", "on_d0 + 2 * b / other_count", "on_d0", softmax_n_is_least
    ),
    "sufficient n: n": Fault(theorem, "_is_sufficient", "other_count * r", "size * r", linear_n_is_least),
    "power: beta - 1": Fault(
        Power, "log_ratio", "float(self.beta)", "(float(self.beta) - 1)", lambda: boundary.degree_point(1000).holds
    ),
    "power: 0.99 beta": Fault(
        Power, "log_ratio", "float(self.beta)", "0.99 * float(self.beta)", lambda: boundary.degree_point(10**6).holds
    ),
    "taylor": Fault(Taylor, "_horner", "order, 0, -1", "order, 1, -1", lambda: boundary.taylor_point(8).holds),
    "routing": Fault(Taylor, "_horner", "order, 0, -1", "order, 1, -1", claim_holds("routing-degree")),
    "majority: no noise": Fault(
        Majority, "describe", "self.noise)", "ZERO)", lambda: retrieval.majority_point(1000, Fraction(2)).holds
    ),
    "majority: one group": Fault(
        Majority,
        "describe",
        "unit_vector(group,",
        "unit_vector(0,",
        lambda: retrieval.majority_point(1000, Fraction(2)).holds,
    ),
    "rough: one spike": Fault(
        Rough, "matrix", "arange(self.spikes)", "arange(1)", lambda: rough.tokens_point({"spikes": 3}).holds
    ),
    "rough: half the noise": Fault(
        Rough, "_without_spikes", NOISE, f"0.5 * {NOISE}", lambda: rough.tokens_point({"noise": "0.01"}).holds
    ),
    "hits: recall": Fault(
        Tally,
        "add",
        "self.hits += int((~surely[0] & surely[1])",
        "self.hits += int(surely[1]",
        lambda: all(retrieval.past_point(name, 8).holds for name in retrieval.LIMITED),
    ),
    "hits: formula": Fault(
        Tally,
        "add",
        "self.hits += int((~surely[0] & surely[1])",
        "self.hits += int(surely[1]",
        lambda: signs.sampled_point(*signs.SAMPLED[2]).holds,
    ),
    "interval": Fault(
        tally,
        "binomial_interval",
        "(1 - confidence) / 2",
        "1 - confidence",
        lambda: signs.interval_point(3, 0.99).holds,
    ),
    "worst threshold": Fault(
        best_threshold,
        "_best_gap",
        "low, high = max(",
        "low, high = min(",
        lambda: margins.tuned_point(1000, 4, 80).holds,
    ),
    "location": Fault(
        Location, "tokens", "self.unit**2", "self.unit", lambda: retrieval.location_dense_point(1000).holds
    ),
    "cross": Fault(Cross, "block_model", "r_q * (b + c)", "(b + c)", claim_holds("cross-weight")),
    "counts": Fault(BlockConstruction, "group_counts", "[size - 1]", "[size]", claim_holds("spike-shape")),
    "dispersion: one more": Fault(
        Dispersion, "describe", "self.n - 1", "self.n", lambda: logit_scale.weight_point(3, 1000).holds
    ),
    "dispersion: gap": Fault(
        Dispersion, "describe", "1 + self.gap", "self.gap", lambda: logit_scale.weight_point(3, 1000).holds
    ),
    "temperature": Fault(
        Softmax,
        "__call__",
        "temperature * options.counts.log()",
        "options.counts.log()",
        lambda: logit_scale.temperature_point("3/2", 1000).holds,
    ),
}
"""Faults that a reviewer introduced and the claims of that time did not notice."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_review_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = FAULTS[name]
    assert fault.holds()
    fault.introduce(monkeypatch)
    assert not fault.holds()


def test_a_search_that_ends_too_early_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_formats, "LARGEST", 10**18)
    monkeypatch.setattr(margins, "MAX_FORMAT_N", 10**18)
    assert_fails(claim_named("number-formats"))


@pytest.mark.parametrize("changed", [{"peak": "9/2"}, {"base": "7/5"}])
@pytest.mark.parametrize("name", ["plain-softmax-peak", "plain-linear-peak"])
def test_other_scores_of_the_plain_case_are_noticed(
    name: str, changed: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Plain.schema.read
    monkeypatch.setattr(Plain.schema, "read", lambda values: read({**changed, **values}))
    assert_fails(claim_named(name))


def test_another_n_in_the_fast_form_of_the_repaired_softmax_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    call = LogNSoftmax.__call__

    def wrong(self: LogNSoftmax, q: Any, k: Any, v: Any, counts: Any = None, causal: bool = False, **named: Any) -> Any:
        n = k.shape[-2]
        factor = 1 if counts is not None else math.log(n - 1) / math.log(n)
        return call(self, factor * q, k, v, counts, causal, **named)

    monkeypatch.setattr(LogNSoftmax, "__call__", wrong)
    assert not logit_scale.repair_point("logn-softmax", "3/2", 1000).holds


def test_a_state_that_loses_a_dimension_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    call = CausalLinear.__call__

    def wrong(self: CausalLinear, q: Any, *more: Any, **named: Any) -> Any:
        q = q.clone()
        q[..., 0] = 0
        return call(self, q, *more, **named)

    monkeypatch.setattr(CausalLinear, "__call__", wrong)
    assert_fails(claim_named("state-rank"))
