"""How the type of a document is written: a TypedDict below `@document`, whose texts become descriptions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from pydantic.json_schema import GenerateJsonSchema

DRAFT = "https://json-schema.org/draft/2020-12/schema"

document = with_config(ConfigDict(extra="forbid", use_attribute_docstrings=True))
"""No other keys, and the text below a key is its description."""
open_document = with_config(ConfigDict(extra="allow", use_attribute_docstrings=True))
"""The same, with other keys."""

Probability = Annotated[float, Field(ge=0, le=1)]
Whole = Annotated[int, Field(ge=0)]
Number = float | None
"""A number, or null where it is not finite."""
Exact = Annotated[int | str, Field(description='A whole number, or text that is exact, as "1/3" or "0.1".')]
Values = dict[str, Exact]
"""Parameters by name."""
Interval = Annotated[list[Number], Field(min_length=2, max_length=2)]
Texts = list[str]
Word = Literal["distinguishes", "blind", "saturated", "partial", "undecided"]


class _Plain(GenerateJsonSchema):
    """Without titles that say a key again."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema(kind: Any, title: str, description: str) -> dict[str, Any]:
    """The JSON Schema of a type."""
    made = TypeAdapter[Any](kind).json_schema(schema_generator=_Plain, mode="serialization")
    made.pop("title", None)
    made.pop("description", None)
    return {"$schema": DRAFT, "title": title, "description": description, **made}
