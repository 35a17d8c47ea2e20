"""What a callable does to few and narrow tokens it does to many and wide ones.

A callable has no definition beside it that says what long inputs give. But there are things that change
nothing for many a mechanism: keys that no query minds, coordinates of zeros, features of other values. Where
a few of them were seen to change nothing, many must not either.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

from separatrix.contract._base import Broken, Skipped, check
from separatrix.contract.calls import fast
from separatrix.contract.inputs import LENGTH, Tokens, modes, require_equal, rounding, sizes, tokens
from separatrix.core.errors import one_line
from separatrix.mechanisms import Mechanism, observed
from separatrix.mechanisms.custom import CustomMechanism

KEYS = (-1000.0, 0.0)
"""Coordinates of keys that queries of positive ones may not mind: a weight of 0, or a score of 0."""
BLOCKS = (160, 192, 256, 257, 384, 512, 768, 1024)
FEW_KEYS, MANY_KEYS = (
    ((LENGTH, 5), (66, 14)),
    tuple(
        n - LENGTH
        for n in (*range(19, 130), *range(150, 1101, 50), *BLOCKS, *range(233, 1100, 144), 2048, 2500)
    ),
)
"""How many keys, and after how many tokens: where it is looked, and where it is asked (after LENGTH).

All up to 129 tokens, then hundreds, odd numbers and those that fill blocks."""
FEW_COORDINATES, MANY_COORDINATES = (2, 3, 7), (*range(8, 125), 139, 155, 187, 219, 251, 507)
FEW_FEATURES, MANY_FEATURES = (1, 3), (*range(4, 123), 137, 153, 185, 217, 249, 505)
FEW_HEADS, OTHER_HEADS = (2, 3), (1, *range(4, 33), 40, 48, 64)
"""All of them up to those that models have."""
FEW_BEFORE, MANY_BEFORE = (1, 5, 14, 23, 40), (128, 256, 512, 1024, 2048)
"""How many tokens come before: powers of 2, where blocks of tokens and strides begin anew."""
FEW_QUERIES, MANY_QUERIES = (1, 4, LENGTH - 1), (LENGTH + 1, 2 * LENGTH, 70, 130)
"""Fewer queries than the LENGTH keys there are, and more."""

Change = Callable[[Tokens], Tokens]


@check("normalised", "prefix")
def more_keys(mechanism: Mechanism) -> None:
    """Keys that no query minds change nothing, however many: asked where a few change nothing."""
    needs_asking(mechanism)
    if not mechanism.length_free:
        raise Skipped("it says that results depend on how many tokens there are")
    for causal in modes(mechanism):
        if causal:  # there later keys never count, which is asked for elsewhere
            continue
        for key in KEYS:
            if all(_changes_nothing(mechanism, causal, n, _more_keys(m, key)) for n, m in FEW_KEYS):
                for many in MANY_KEYS:
                    what = f"{many} more keys of {key:g} with values of 0 change results, a few do not"
                    what = f"{what}; if that is meant, say length_free = False"
                    _require_nothing(mechanism, causal, _more_keys(many, key), what)
                return
    raise Skipped("there are no keys that it does not mind")


@check("normalised", "prefix")
def later_places(mechanism: Mechanism) -> None:
    """Tokens that no later query minds change nothing, however many come before: asked where a few do not."""
    needs_asking(mechanism)
    if True not in modes(mechanism):
        raise Skipped("it has no causal form")
    for key in KEYS:
        if all(
            _changes_nothing(mechanism, True, LENGTH, _tokens_before(few, key), True) for few in FEW_BEFORE
        ):
            for many in MANY_BEFORE:
                what = f"{many} tokens before, of keys {key:g} and values 0, change results, a few do not"
                _require_nothing(mechanism, True, _tokens_before(many, key), what, before=True)
            return
    raise Skipped("tokens before the others are something to it")


@check("normalised", "prefix", "cross")
def more_queries(mechanism: Mechanism) -> None:
    """A query gives the same among more queries than keys: asked where it does among fewer."""
    needs_asking(mechanism)
    if False not in modes(mechanism):
        raise Skipped("it only looks back, so there is a query for every key")
    q, k, v = tokens(max(MANY_QUERIES), LENGTH, shape=sizes(mechanism, 1, 2))

    def rows(start: int, stop: int) -> Tensor:
        with torch.no_grad():
            return fast(mechanism, q[..., start:stop, :], k, v)

    try:
        usual = rows(0, LENGTH)
        alone = all(observed.alike(rows(0, few), usual[..., :few, :]) for few in FEW_QUERIES)
    except Exception:  # a stranger may refuse fewer queries than keys in any way
        alone = False
    if not alone:
        raise Skipped("queries are something to each other")
    placeless = mechanism.order_free(2 * max(MANY_QUERIES), q.shape[-1])
    for many in MANY_QUERIES:
        try:
            found = rows(0, many)
        except observed.REFUSALS as refusal:
            raise Skipped(f"it refuses {many} queries on {LENGTH} keys: {one_line(refusal, 90)}") from None
        what = f"{many} queries on {LENGTH} keys give another result than {LENGTH} of them"
        require_equal(found[..., :LENGTH, :], usual, rounding(q.dtype), what)
        if placeless:
            last = rows(many - LENGTH, many)
            require_equal(found[..., -LENGTH:, :], last, rounding(q.dtype), what)


@check("normalised", "prefix")
def more_coordinates(mechanism: Mechanism) -> None:
    """Coordinates of zeros change nothing, however many: asked where a few change nothing."""
    needs_asking(mechanism)
    if mechanism.fixed_width is not None:
        raise Skipped(f"it takes tokens of width {mechanism.fixed_width} alone")
    asked = False
    for causal in modes(mechanism):
        for scaled in (False, True):
            for first in (False, True):
                few = (_more_coordinates(many, scaled, first) for many in FEW_COORDINATES)
                if not all(_changes_nothing(mechanism, causal, LENGTH, each) for each in few):
                    break
                asked = True
                for many in MANY_COORDINATES:
                    where = "before the others " if first else ""
                    what = f"{many} more coordinates of 0 {where}change results, a few do not"
                    change = _more_coordinates(many, scaled, first)
                    _require_nothing(mechanism, causal, change, f"{what} (causal={causal})")
            if asked:
                break
    if not asked:
        raise Skipped("coordinates of 0 are something to it")


@check("normalised", "prefix")
def more_features(mechanism: Mechanism) -> None:
    """Further features of values change no other ones: asked where a few change none."""
    needs_asking(mechanism)
    if mechanism.fixed_features is not None:
        raise Skipped(f"it takes values of {mechanism.fixed_features} features alone")
    asked = False
    for causal in modes(mechanism):
        if all(_changes_nothing(mechanism, causal, LENGTH, _more_features(many)) for many in FEW_FEATURES):
            asked = True
            placeless = all(_last_features_off(mechanism, causal, many) is None for many in FEW_FEATURES)
            for many in MANY_FEATURES:
                what = f"{many} more features of values change others, a few do not (causal={causal})"
                _require_nothing(mechanism, causal, _more_features(many), what)
                if placeless and (off := _last_features_off(mechanism, causal, many)):
                    raise off
    if not asked:
        raise Skipped("features of values are something to each other")


@check("normalised", "prefix")
def more_heads(mechanism: Mechanism) -> None:
    """A head gives the same among others, however many: asked where it does among 2 and 3."""
    needs_asking(mechanism)
    if mechanism.fixed_heads is not None:
        raise Skipped(f"it takes {mechanism.fixed_heads} heads alone")
    asked = False
    for causal in modes(mechanism):
        given = tokens(shape=sizes(mechanism, 1, max(OTHER_HEADS)))
        with torch.no_grad():
            first = {
                heads: _first_heads(mechanism, given, heads, causal)[:, :1]
                for heads in (*FEW_HEADS, *OTHER_HEADS)
            }
        few, other = (first[heads] for heads in FEW_HEADS)
        if not torch.allclose(few, other, rtol=1e-12, atol=1e-12):
            continue
        asked = True
        for heads in OTHER_HEADS:
            what = f"the first of {heads} heads gives another result than among 2 or 3 (causal={causal})"
            require_equal(first[heads], few, rounding(torch.float64), what)
    if not asked:
        raise Skipped("how many heads there are is something to it")


def _first_heads(mechanism: Mechanism, given: Tokens, heads: int, causal: bool) -> Tensor:
    q, k, v = (x[:, :heads] for x in given)
    return fast(mechanism, q, k, v, causal=causal)


def needs_asking(mechanism: Mechanism) -> None:
    """Only callables have no definition that says what long and wide inputs give."""
    if not isinstance(mechanism, CustomMechanism):
        raise Skipped("its definition says what more tokens, coordinates and features give")


def _more_keys(many: int, key: float) -> Change:
    """Tokens of such keys after the others, with values of 0."""
    return lambda given: (
        pad(given[0], (0, 0, 0, many), value=0.5),
        pad(given[1], (0, 0, 0, many), value=key),
        pad(given[2], (0, 0, 0, many)),
    )


def _tokens_before(many: int, key: float) -> Change:
    """Tokens of such keys before the others, with values of 0."""
    return lambda given: (
        pad(given[0], (0, 0, many, 0), value=0.5),
        pad(given[1], (0, 0, many, 0), value=key),
        pad(given[2], (0, 0, many, 0)),
    )


def _more_coordinates(many: int, scaled: bool, first: bool) -> Change:
    """Zeros beside queries and keys; for who divides logits by the root of the width, `scaled`."""
    ends = (many, 0) if first else (0, many)

    def change(given: Tokens) -> Tokens:
        q, k, v = given
        width = q.shape[-1]
        times = ((width + many) / width) ** 0.5 if scaled else 1.0
        return times * pad(q, ends), pad(k, ends), v

    return change


def _more_features(many: int) -> Change:
    """Other values beside the values."""
    return lambda given: (given[0], given[1], torch.cat([given[2], _others(given[2], many)], dim=-1))


def _last_features_off(mechanism: Mechanism, causal: bool, many: int) -> Broken | None:
    """What is wrong if the last features, after so many others, do not give what they give before these."""
    q, k, v = tokens(shape=sizes(mechanism, 1, 2))
    with torch.no_grad():
        first, last = (
            fast(mechanism, q, k, torch.cat(parts, dim=-1), causal=causal)
            for parts in ((v, _others(v, many)), (_others(v, many), v))
        )
    what = f"{many} more features of values before others change these, a few do not (causal={causal})"
    try:
        require_equal(last[..., many:], first[..., : v.shape[-1]], rounding(v.dtype), what)
    except Broken as off:
        return off
    return None


def _others(v: Tensor, many: int) -> Tensor:
    drawn = torch.Generator().manual_seed(8)
    return torch.rand(*v.shape[:-1], many, generator=drawn, dtype=v.dtype)


def _changes_nothing(
    mechanism: Mechanism, causal: bool, length: int, change: Change, before: bool = False
) -> bool:
    try:
        _require_nothing(mechanism, causal, change, "", length, before)
    except Exception:  # a stranger may refuse such tokens in any way
        return False
    return True


def _require_nothing(
    mechanism: Mechanism,
    causal: bool,
    change: Change,
    what: str,
    length: int = LENGTH,
    before: bool = False,
) -> None:
    """The first tokens, or the last if others come `before` them, give what they give without the change."""
    given = tokens(length, shape=sizes(mechanism, 1, 2))
    with torch.no_grad():
        expected = fast(mechanism, *given, causal=causal)
        found = fast(mechanism, *change(given), causal=causal)
    found = (found[..., -length:, :] if before else found[..., :length, :])[..., : expected.shape[-1]]
    if found.shape != expected.shape:
        raise Broken(what)
    require_equal(found, expected, rounding(torch.float64), what)
