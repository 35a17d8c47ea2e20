"""Untrusted text made safe for terminals, pages and spreadsheets."""

from __future__ import annotations

import re

HIDDEN = "\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
"""Control characters, direction marks and invisible characters, as a character class for `re`."""
FORMULA = "=+@\t\r-"
"""The characters with which a spreadsheet formula begins."""
SUSPECT = f"^[{FORMULA}]|[{HIDDEN}]"
"""Matches every text that `visible` or `no_formula` changes, and some numbers; also valid in polars."""
_HIDDEN = re.compile(f"[{HIDDEN}\ud800-\udfff]")
_FORMULA = re.compile(f"[{FORMULA}]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?(/\d+)?")


def visible(text: str, keep: str = "") -> str:
    r"""Escape characters that are invisible or control a terminal, except those in `keep`.

    >>> print(visible("a\x1b[2Jb\u202ec"))
    a\x1b[2Jb\u202ec
    """
    return _HIDDEN.sub(lambda match: match[0] if match[0] in keep else ascii(match[0])[1:-1], text)


def no_formula(text: str) -> str:
    """Prefix a text that a spreadsheet would take for a formula with an apostrophe; numbers are unchanged.

    >>> no_formula("=cmd"), no_formula("-0.5"), no_formula("-1/3"), no_formula("softmax")
    ("'=cmd", '-0.5', '-1/3', 'softmax')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
