"""Texts of strangers, made harmless for whoever shows them."""

from __future__ import annotations

import re

HIDDEN = "\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
"""Characters that steer a terminal, turn the direction of writing, or cannot be seen, as `re` takes them."""
FORMULA = "=+@\t\r-"
"""What a formula begins with."""
SUSPECT = f"^[{FORMULA}]|[{HIDDEN}]"
"""Finds every text that `visible` or `no_formula` would change, and some numbers; in polars as well."""
_HIDDEN = re.compile(f"[{HIDDEN}\ud800-\udfff]")
_FORMULA = re.compile(f"[{FORMULA}]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(/\d+)?")


def visible(text: str, keep: str = "") -> str:
    r"""A text in which nothing is hidden and nothing steers a terminal: such characters are spelled out.

    Those in `keep` stay, as the ends of lines do in a text of many.

    >>> print(visible("a\x1b[2Jb\u202ec"))
    a\x1b[2Jb\u202ec
    """
    return _HIDDEN.sub(lambda found: found[0] if found[0] in keep else ascii(found[0])[1:-1], text)


def no_formula(text: str) -> str:
    """A text that no spreadsheet takes for a formula: an apostrophe before it; numbers stay as they are.

    >>> no_formula("=cmd"), no_formula("-0.5"), no_formula("-1/3"), no_formula("softmax")
    ("'=cmd", '-0.5', '-1/3', 'softmax')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
