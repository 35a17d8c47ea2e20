"""Documents: dataclasses that define their own JSON and JSON Schema.

The keys of a document's JSON object are its dataclass fields and its `shown` values. Values convert by type
(`to_json`): a fraction becomes exact text, a number that is not finite becomes null, an enumeration becomes
its value, a document becomes an object. The JSON Schema comes from the type annotations, its descriptions
from the docstrings.

>>> from dataclasses import dataclass
>>> from fractions import Fraction
>>> @dataclass(frozen=True)
... class Point(Document):
...     x: Fraction
...     note: Hidden[str]
...     @shown
...     def doubled(self) -> float:
...         "Twice x."
...         return 2 * float(self.x)
>>> Point(Fraction(1, 3), "not printed").as_json()
{'x': '1/3', 'doubled': 0.6666666666666666}
>>> json_schema(Point)["properties"]["doubled"]["description"]
'Twice x.'
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import math
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from functools import cache, singledispatch
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NotRequired,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from separatrix.core.numbers.exact import format_exact

Value = TypeVar("Value")
Convert = Callable[[Any], Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
Hidden = Annotated[Value, "hidden"]
"""The type of a field that is not part of the JSON."""
Inlined = Annotated[Value, "inlined"]
"""The type of a field that is a document whose keys stand in the JSON of the document that holds it."""
_SCHEMA_TYPES: dict[type, Any] = {Fraction: str, Path: str}


class Document:
    """A dataclass with a JSON form."""

    def as_json(self) -> Any:
        """Return the JSON value that the command prints with --json."""
        return to_json(self)


class shown(Generic[Value]):  # noqa: N801 (used like functools.cached_property)
    """A computed value that is part of the document: a cached property with a JSON key."""

    def __init__(self, compute: Callable[[Any], Value], key: str = "") -> None:
        self.compute, self.key, self.__doc__ = compute, key, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name, self.key = name, self.key or name

    @overload
    def __get__(self, instance: None, owner: type) -> shown[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> shown[Value] | Value:
        if instance is None:
            return self
        # Stored under its own name, so that later reads find the value before this descriptor.
        value = instance.__dict__[self.name] = self.compute(instance)
        return value


def shown_as(key: str) -> Callable[[Callable[[Any], Value]], shown[Value]]:
    """Return a `shown` decorator for a JSON key that differs from the attribute's name."""
    return lambda compute: shown(compute, key)


class Key(NamedTuple):
    """One key of a document."""

    key: str
    attribute: str
    inlined: bool = False


@cache
def keys_of(kind: type) -> tuple[Key, ...]:
    """Return the keys of a document: those of its fields, then those of its shown values."""
    keys = []
    for field in dataclasses.fields(kind):
        # Annotations are text here. As in `dataclasses` itself, they are not evaluated: hidden fields may
        # have types that are imported for type checkers only.
        annotation = str(field.type)
        if not annotation.startswith("Hidden["):
            keys.append(Key(field.name, field.name, annotation.startswith("Inlined[")))
    for base in reversed(kind.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, shown) and not any(key.attribute == name for key in keys):
                keys.append(Key(value.key, name))
    return tuple(keys)


@singledispatch
def to_json(value: Any) -> Any:
    """Return the JSON value for a value of any supported type."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{type(value).__name__} has no JSON form; see register_json")
    document: dict[str, Any] = {}
    for key, attribute, is_inlined in keys_of(type(value)):
        inner = to_json(getattr(value, attribute))
        document |= inner if is_inlined else {key: inner}
    return document


def register_json(kind: type, schema_type: Any, convert: Convert) -> None:
    """Define the JSON form of a class that is no document, for example a mechanism by its name."""
    to_json.register(kind, lambda value: convert(value))
    _SCHEMA_TYPES[kind] = schema_type


for _plain in (bool, int, str, NoneType):
    to_json.register(_plain, lambda value: value)
to_json.register(float, lambda value: float(value) if math.isfinite(value) else None)
to_json.register(Fraction, format_exact)
to_json.register(Enum, lambda value: value.value)
to_json.register(Path, str)
to_json.register(Mapping, lambda value: {str(to_json(name)): to_json(item) for name, item in value.items()})
to_json.register(Sequence, lambda value: [to_json(item) for item in value])
to_json.register(str, lambda value: str(value))


def json_schema(kind: Any, title: str = "", description: str = "") -> dict[str, Any]:
    """Return the JSON Schema of a document class, or of a list or union of them."""
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class WithoutTitles(GenerateJsonSchema):
        """Titles would only repeat the keys."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    generated = TypeAdapter[Any](schema_type(kind)).json_schema(schema_generator=WithoutTitles, mode="serialization")
    generated.pop("title", None)
    generated.pop("description", None)
    return {"$schema": DRAFT, "title": title or getattr(kind, "__name__", ""), "description": description, **generated}


def schema_type(annotation: Any) -> Any:
    """Return the type of the JSON for an annotation, made of types that pydantic knows."""
    if annotation in _SCHEMA_TYPES:
        return _SCHEMA_TYPES[annotation]
    if annotation is float:
        return float | None  # null where it is not finite
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return _typed_dict(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return Literal[tuple(member.value for member in annotation)]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in _SCHEMA_TYPES:  # a registered generic class, for example numpy.ndarray[Any, Any]
        return _SCHEMA_TYPES[origin]
    if origin is None or origin is Literal:
        return annotation
    if origin in (Required, NotRequired):
        return origin[schema_type(arguments[0])]
    if origin is Annotated:
        return Annotated[schema_type(arguments[0]), *arguments[1:]]
    if origin in (Union, UnionType):
        return Union[tuple(map(schema_type, arguments))]  # noqa: UP007 (made at run time)
    if issubclass(origin, Mapping):
        return dict[str, schema_type(arguments[1])]  # type: ignore[misc]
    if origin is tuple and arguments[-1] is not Ellipsis:
        return _fixed_list([schema_type(argument) for argument in arguments])
    if issubclass(origin, Sequence):
        return list[schema_type(arguments[0])]  # type: ignore[misc]
    raise TypeError(f"{annotation} has no JSON Schema")


def _fixed_list(kinds: list[Any]) -> Any:
    from pydantic import Field

    items: Any = list.__class_getitem__(Union[tuple(kinds)])  # noqa: UP007 (made at run time)
    return Annotated[items, Field(min_length=len(kinds), max_length=len(kinds))]


_typed_dicts: dict[type, Any] = {}


def _typed_dict(kind: type) -> Any:
    """Return a TypedDict with the keys of a document, their types and their descriptions."""
    if kind not in _typed_dicts:
        from pydantic import ConfigDict, with_config
        from typing_extensions import TypedDict

        typed_dict: Any = TypedDict(kind.__name__, dict.fromkeys(_key_names(kind), Any))  # type: ignore[misc]
        typed_dict.__doc__, typed_dict.__module__ = kind.__doc__, kind.__module__
        _typed_dicts[kind] = with_config(ConfigDict(extra="forbid"))(typed_dict)
        # The types are filled in last: a document that contains others of its kind finds itself above.
        typed_dict.__annotations__.update(_typed_keys(kind))
    return _typed_dicts[kind]


def _key_names(kind: type) -> Iterator[str]:
    for key, attribute, is_inlined in keys_of(kind):
        yield from _key_names(get_args(_field_type(kind, attribute))[0]) if is_inlined else [key]


def _field_type(kind: type, name: str) -> Any:
    """Return the type of one field; those of hidden fields may not be importable at run time."""
    base = next(base for base in kind.__mro__ if name in vars(base).get("__annotations__", ()))
    annotation = base.__annotations__[name]
    return eval(annotation, vars(sys.modules[base.__module__])) if isinstance(annotation, str) else annotation


def _typed_keys(kind: type) -> Iterator[tuple[str, Any]]:
    texts = _field_docstrings(kind)
    for key, attribute, is_inlined in keys_of(kind):
        attribute_value = inspect.getattr_static(kind, attribute, None)
        if isinstance(attribute_value, shown):
            annotation = get_type_hints(attribute_value.compute, include_extras=True)["return"]
            text = inspect.getdoc(attribute_value) or ""
        else:
            annotation, text = _field_type(kind, attribute), texts.get(attribute, "")
        if is_inlined:
            yield from _typed_keys(get_args(annotation)[0])
        else:
            yield key, _describe_type(schema_type(annotation), text)


def _describe_type(kind: Any, text: str) -> Any:
    from pydantic import Field

    if not text:
        return kind
    if get_origin(kind) in (Required, NotRequired):  # older releases of pydantic read these outermost only
        return get_origin(kind)[Annotated[get_args(kind)[0], Field(description=text)]]
    return Annotated[kind, Field(description=text)]


def _field_docstrings(kind: type) -> dict[str, str]:
    """Return the strings that stand below the fields of a class and of its bases."""
    texts: dict[str, str] = {}
    for base in filter(dataclasses.is_dataclass, reversed(kind.__mro__)):
        try:
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        except OSError:  # a class that was typed into an interpreter
            continue
        assert isinstance(tree, ast.ClassDef)
        for field, below in itertools.pairwise(tree.body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    texts[name] = " ".join(text.split())
    return texts
