"""Pairs of small token sets, D0 and D1, in exact numbers, and the families to which their differences belong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from separatrix.constructions import Description, TokenGroup
from separatrix.core.documents import Document, register_json
from separatrix.core.numbers import format_exact, parse_exact
from separatrix.core.parameters import UsageError

Position = tuple[str, int, int]
"""The position of a number: queries, keys, values or counts, then its row and column."""
Entries = dict[Position, Fraction]
"""Every number of the description of a label, by position."""

MAX_NUMBER = 10**12
"""The largest count, absolute value and denominator in a file, so that a mistake does not exhaust memory."""
MAX_ENTRIES = 10_000
"""The largest number of entries of a list in a file."""
CROWD_RATIO = 10
"""Tokens are a crowd if there are at least this many times as many of them as of the others."""


def _read_vector(numbers: list[Any]) -> tuple[Fraction, ...]:
    vector = tuple(parse_exact(x, "a number of the instance") for x in numbers)
    for x in vector:
        if abs(x) > MAX_NUMBER or x.denominator > MAX_NUMBER:
            raise UsageError(
                f"a number of the instance, {format_exact(x)[:20]}, is out of range: its absolute value and its "
                "denominator must be at most 1e12"
            )
    return vector


_LENGTH = Field(min_length=1, max_length=MAX_ENTRIES)
_Vector = Annotated[list[str | int | float], _LENGTH, AfterValidator(_read_vector)]


class TokenModel(BaseModel, extra="forbid", strict=True):
    """A group of equal tokens; numbers are exact."""

    key: _Vector
    value: _Vector
    count: int = Field(ge=1, le=MAX_NUMBER)


class LabelModel(BaseModel, extra="forbid", strict=True):
    """The queries and tokens of one label of an instance."""

    queries: Annotated[list[_Vector], _LENGTH]
    tokens: Annotated[list[TokenModel], _LENGTH]


class InstanceModel(BaseModel, extra="forbid", strict=True):
    """Both labels of an instance, as files hold them."""

    d0: LabelModel
    d1: LabelModel


def _label_json(label: Description) -> dict[str, Any]:
    tokens = [{"key": _texts(group.key), "value": _texts(group.value), "count": group.count} for group in label.groups]
    return {"queries": [_texts(query) for query in label.queries], "tokens": tokens}


def _texts(vector: Sequence[Fraction | float]) -> list[str]:
    return [format_exact(Fraction(x)) for x in vector]


register_json(Description, LabelModel, _label_json)


@dataclass(frozen=True)
class Instance(Document):
    """The queries and tokens of both labels, which a mechanism is to distinguish."""

    d0: Description
    d1: Description

    @property
    def labels(self) -> tuple[Description, Description]:
        """D0 and D1."""
        return self.d0, self.d1

    @property
    def is_mirrored(self) -> bool:
        """Whether D1 has the tokens of D0 in reverse order, and differs from D0."""
        backwards = self.d0.groups[::-1]
        return self.d0.queries == self.d1.queries and self.d1.groups == backwards != self.d0.groups

    @property
    def differs_in(self) -> tuple[str, ...]:
        """The parts in which D0 and D1 differ: queries, keys, values, counts; or their order."""
        if self.is_mirrored:
            return ("order",)
        d0, d1 = list_entries(self.d0), list_entries(self.d1)
        return tuple({position[0]: None for position in (*d0, *d1) if d0.get(position) != d1.get(position)})


def list_entries(description: Description) -> Entries:
    """Return every number of the description of a label, by position.

    >>> description = Description(((Fraction(1),),), (TokenGroup((Fraction(2),), (Fraction(3),), 4),))
    >>> [(*position, int(x)) for position, x in list_entries(description).items()]
    [('queries', 0, 0, 1), ('keys', 0, 0, 2), ('values', 0, 0, 3), ('counts', 0, 0, 4)]
    """
    rows = {
        "queries": description.queries,
        "keys": [group.key for group in description.groups],
        "values": [group.value for group in description.groups],
        "counts": [(group.count,) for group in description.groups],
    }
    return {
        (part, i, j): Fraction(x)
        for part, vectors in rows.items()
        for i, vector in enumerate(vectors)
        for j, x in enumerate(vector)
    }


def build_description(entries: Mapping[Position, Fraction]) -> Description:
    """Return the description with these entries; missing rows and columns are closed up."""
    rows: dict[str, list[tuple[Fraction, ...]]] = {"queries": [], "keys": [], "values": [], "counts": []}
    for (part, _), positions in groupby(sorted(entries), key=lambda position: position[:2]):
        rows[part].append(tuple(entries[position] for position in positions))
    columns = zip(rows["keys"], rows["values"], rows["counts"], strict=True)
    groups = tuple(TokenGroup(key, value, int(count)) for key, value, (count,) in columns)
    return Description(tuple(rows["queries"]), groups)


def read_instance(data: Any) -> Instance:
    """Return the instance in a JSON document, or raise a UsageError about its first mistake."""
    try:
        model = InstanceModel.model_validate(data)
    except ValidationError as error:
        mistake = error.errors()[0]
        place = ".".join(map(str, ("instance", *mistake["loc"])))
        raise UsageError(f"{place}: {mistake['msg']}") from None
    instance = Instance(_label_from(model.d0), _label_from(model.d1))
    groups = [group for label in instance.labels for group in label.groups]
    queries = [query for label in instance.labels for query in label.queries]
    if len({len(vector) for vector in (*queries, *(group.key for group in groups))}) > 1:
        raise UsageError("the queries and keys of an instance need one common width")
    if len({len(group.value) for group in groups}) > 1:
        raise UsageError("the values of an instance need one common width")
    if len(instance.d0.queries) != len(instance.d1.queries):
        raise UsageError("d0 and d1 need as many queries as each other: outputs are compared row by row")
    return instance


def _label_from(model: LabelModel) -> Description:
    tokens: Any = model.tokens  # vectors are tuples of fractions after validation
    queries: Any = model.queries
    return Description(tuple(queries), tuple(TokenGroup(token.key, token.value, token.count) for token in tokens))


def recognise_family(instance: Instance) -> tuple[str, str]:
    """Return the name of the family and a sentence about it."""
    parts = instance.differs_in
    if parts == ("order",):
        return "order", "the same tokens in reverse"
    if parts == ("counts",):
        return _recognise_counts(instance)
    if parts == ("queries",) and (factor := query_factor(instance)) is not None:
        return "collinear queries", f"D1's query is {format_exact(factor)} × D0's"
    if parts == ("queries",):
        return "another query", "only queries differ"
    if parts in (("keys",), ("values",)):
        return _recognise_tokens(instance, "key" if parts == ("keys",) else "value")
    return "mixed", f"{' and '.join(parts)} differ"


def _recognise_counts(instance: Instance) -> tuple[str, str]:
    pairs = zip(instance.d0.groups, instance.d1.groups, strict=True)
    ratios = {Fraction(after.count, before.count) for before, after in pairs}
    if len(ratios) == 1:
        return "duplication", f"only counts differ, each {format_exact(ratios.pop())} times as large in D1"
    return "recount", "only counts differ, and not all by one factor"


def query_factor(instance: Instance) -> Fraction | None:
    """Return the common factor of all queries that differ; None if there is none."""
    pairs = zip(instance.d0.queries, instance.d1.queries, strict=True)
    factors = {_factor(before, after) for before, after in pairs if before != after}
    return factors.pop() if len(factors) == 1 else None


def _recognise_tokens(instance: Instance, part: str) -> tuple[str, str]:
    pairs = zip(instance.d0.groups, instance.d1.groups, strict=True)
    changes = [(before, after) for before, after in pairs if before != after]
    changed_count = sum(before.count for before, _ in changes)
    unchanged_count = sum(group.count for group in instance.d0.groups) - changed_count
    if unchanged_count >= CROWD_RATIO * changed_count:
        tokens = "token" if changed_count == 1 else "tokens"
        return "spike", f"the {part} of {changed_count} {tokens} differs, beside {unchanged_count:,}"
    if changed_count >= CROWD_RATIO * unchanged_count > 0:
        return "spike", f"the {part} of a crowd of {changed_count:,} differs, beside {unchanged_count}"
    factors = {_factor(before.key, after.key) for before, after in changes}
    if part == "key" and len(factors) == 1 and (factor := factors.pop()):
        return "collinear keys", f"D1's key is {format_exact(factor)} × D0's"
    return f"another {part}", f"only {part}s differ"


def _factor(before: Sequence[Fraction | float], after: Sequence[Fraction | float]) -> Fraction | None:
    """Return the number by which `before` is multiplied to give `after`; None if there is none or it is 0."""
    pairs = [(Fraction(x), Fraction(y)) for x, y in zip(before, after, strict=True)]
    ratios = {y / x for x, y in pairs if x != 0}
    has_new_entry = any(y != 0 for x, y in pairs if x == 0)
    return ratios.pop() if len(ratios) == 1 and not has_new_entry and 0 not in ratios else None
