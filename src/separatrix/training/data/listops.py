"""ListOps as the Long Range Arena published it: three tables that a user has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from itertools import islice
from typing import ClassVar

import numpy as np

from separatrix.core.errors import UsageError
from separatrix.training.data._base import DataSet
from separatrix.training.data.floors import Floor, majority
from separatrix.training.data.folder import DataFile
from separatrix.training.data.samples import Splits, Texts

LARGEST = 1 << 30
OPERATORS = {b"[MIN": 11, b"[MAX": 12, b"[MED": 13, b"[SM": 14}
END = 15
"""Tokens by number: 1 to 10 for the digits 0 to 9, then operators and the end of a list; 0 fills up."""
CHECKED = 2000
"""Lines of each table whose value is worked out again."""
_OPERATOR = {OPERATORS[b"[MIN"]: min, OPERATORS[b"[MAX"]: max}
_TOKENS = bytes.maketrans(b"0123456789NXDS]", bytes(range(1, 16)))


class ListOps(DataSet[Texts]):
    """Nested lists of digits under minimum, maximum, median and sum modulo 10."""

    name = "listops"
    title = "nested lists of digits, and the digit that they come to"
    description = (
        "Expressions such as [MAX 4 3 [MIN 2 3 ] 1 ] of up to 2,000 tokens, and the digit each comes to. "
        "Tokens are numbers: 1 to 10 for the digits, 11 to 14 for MIN, MAX, MED and SM (the sum modulo 10), "
        "15 for the end of a list; brackets of the file's own, ( and ), are left out. There is no checksum: "
        f"instead the values of the first {CHECKED:,} lines of each table are worked out again. What a seed "
        "generates is a task, not a data set."
    )
    source = "Nangia and Bowman, 2018, in the release of the Long Range Arena, listops-1000"
    classes = 10
    places = ("listops-1000", "lra_release/listops-1000", "lra_release/lra_release/listops-1000")
    files = tuple(DataFile(f"basic_{split}.tsv", LARGEST) for split in ("train", "val", "test"))
    members: ClassVar[Mapping[str, str]] = {}

    def parse(self, contents: Mapping[str, bytes]) -> tuple[Texts, Texts, Texts]:
        train, validation, test = (_table(contents[file.name], file.name) for file in self.files)
        return train, validation, test

    def floors(self, splits: Splits[Texts]) -> tuple[Floor, ...]:
        """The commonest value, and the commonest value under the outermost operator."""
        first = {name: part.symbols[part.starts[:-1]] for name, part in _parts(splits).items()}
        best = {
            token: np.bincount(splits.train.labels[first["train"] == token]).argmax()
            for token in np.unique(first["train"]).tolist()
        }
        said = np.array([best.get(token, -1) for token in first["test"].tolist()])
        right = float(np.mean(said == splits.test.labels))
        return (
            majority(splits.train.labels, splits.test.labels),
            Floor("majority under the outermost operator", right, "accuracy"),
        )


def value(tokens: Iterable[int]) -> int:
    """What an expression comes to.

    >>> value([12, 5, 4, 11, 3, 4, 15, 2, 15])  # [MAX 4 3 [MIN 2 3 ] 1 ]
    4
    """
    stack: list[list[int]] = [[]]
    for token in tokens:
        if token in OPERATORS.values():
            stack.append([token])
        elif token == END:
            operator, *digits = stack.pop()
            stack[-1].append(_apply(operator, digits))
        else:
            stack[-1].append(token - 1)
    ((found,),) = stack
    return found


def _apply(operator: int, digits: list[int]) -> int:
    if operator in _OPERATOR:
        return _OPERATOR[operator](digits)
    return int(np.median(digits)) if operator == OPERATORS[b"[MED"] else sum(digits) % 10


def _parts(splits: Splits[Texts]) -> dict[str, Texts]:
    return {"train": splits.train, "test": splits.test}


def _table(data: bytes, where: str) -> Texts:
    """The expressions and values of a table with the columns Source and Target."""
    lines = BytesIO(data)
    if lines.readline().split() != [b"Source", b"Target"]:
        raise UsageError(f"{where} does not begin with the columns Source and Target")
    texts, labels = list[bytes](), list[int]()
    for number, line in enumerate(lines, 2):
        source, _, target = line.rstrip(b"\r\n").rpartition(b"\t")
        text = _numbers(source)
        if len(target) != 1 or not target.isdigit() or not text or max(text) > END or not min(text):
            raise UsageError(f"{where}, line {number}: this is no expression with its value")
        texts.append(text)
        labels.append(int(target))
    for number, (text, label) in enumerate(islice(zip(texts, labels, strict=True), CHECKED), 2):
        try:
            right = value(text) == label
        except (ValueError, IndexError, TypeError):
            right = False
        if not right:
            raise UsageError(f"{where}, line {number} is corrupt: the expression does not come to {label}")
    return Texts.of(texts, labels)


def _numbers(source: bytes) -> bytes:
    """The tokens of an expression; what is none becomes 0, or more than END."""
    for operator in OPERATORS:
        source = source.replace(operator, operator[-1:] if operator != b"[SM" else b"S")
    return source.translate(_TOKENS, b" ()")
