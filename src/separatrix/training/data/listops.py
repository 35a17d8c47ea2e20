"""ListOps as published by the Long Range Arena: three tables that the user provides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import BytesIO
from itertools import islice

import numpy as np

from separatrix.core.errors import UsageError
from separatrix.training.data._base import DataSet
from separatrix.training.data.floors import Floor, majority
from separatrix.training.data.folder import DataFile
from separatrix.training.data.samples import Splits, Texts

MAX_TABLE_BYTES = 1 << 30
OPERATORS = {b"[MIN": 11, b"[MAX": 12, b"[MED": 13, b"[SM": 14}
END = 15
"""Token numbers: 1 to 10 for the digits 0 to 9, then operators and the end of a list; 0 is padding."""
CHECKED_LINES = 2000
"""Lines of each table whose value is computed again."""
_TOKENS = bytes.maketrans(b"0123456789NXDS]", bytes(range(1, 16)))


class ListOpsData(DataSet[Texts]):
    """Nested lists of digits under minimum, maximum, median and sum modulo 10."""

    name = "listops"
    title = "nested lists of digits, labelled with their value"
    description = (
        "Expressions such as [MAX 4 3 [MIN 2 3 ] 1 ] of up to 2,000 tokens, labelled with their value, a "
        "digit. Tokens are numbers: 1 to 10 for the digits, 11 to 14 for MIN, MAX, MED and SM (the sum "
        "modulo 10), 15 for the end of a list; the parentheses of the files are left out. No checksum is "
        f"known: instead, the values of the first {CHECKED_LINES:,} lines of each table are computed again. "
        "The task of the same name generates its own expressions."
    )
    source = "Nangia and Bowman, 2018, in the release of the Long Range Arena, listops-1000"
    classes = 10
    folders = ("listops-1000", "lra_release/listops-1000", "lra_release/lra_release/listops-1000")
    files = tuple(DataFile(f"basic_{split}.tsv", MAX_TABLE_BYTES) for split in ("train", "val", "test"))

    def parse(self, contents: Mapping[str, bytes]) -> tuple[Texts, Texts, Texts]:
        train, validation, test = (_read_table(contents[file.name], file.name) for file in self.files)
        return train, validation, test

    def floors(self, splits: Splits[Texts]) -> tuple[Floor, ...]:
        """Return the scores of the most frequent value, and of that under the outermost operator."""
        train, test = splits.train, splits.test
        operators, test_operators = (part.symbols[part.starts[:-1]] for part in (train, test))
        best = {
            token: np.bincount(train.labels[operators == token]).argmax() for token in np.unique(operators).tolist()
        }
        predictions = np.array([best.get(token, -1) for token in test_operators.tolist()])
        score = float(np.mean(predictions == test.labels))
        return majority(train.labels, test.labels), Floor("majority under the outermost operator", score)


def evaluate(tokens: Iterable[int]) -> int:
    """Return the value of an expression.

    >>> evaluate([12, 5, 4, 11, 3, 4, 15, 2, 15])  # [MAX 4 3 [MIN 2 3 ] 1 ]
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
    ((value,),) = stack
    return value


def _apply(operator: int, digits: list[int]) -> int:
    if operator in (OPERATORS[b"[MIN"], OPERATORS[b"[MAX"]):
        return min(digits) if operator == OPERATORS[b"[MIN"] else max(digits)
    return int(np.median(digits)) if operator == OPERATORS[b"[MED"] else sum(digits) % 10


def _read_table(data: bytes, source: str) -> Texts:
    """Return the expressions and values of a table with the columns Source and Target."""
    lines = BytesIO(data)
    if lines.readline().split() != [b"Source", b"Target"]:
        raise UsageError(f"{source} does not begin with the columns Source and Target")
    texts, labels = list[bytes](), list[int]()
    for number, line in enumerate(lines, 2):
        expression, _, target = line.rstrip(b"\r\n").rpartition(b"\t")
        text = _tokenize(expression)
        if len(target) != 1 or not target.isdigit() or not text or max(text) > END or not min(text):
            raise UsageError(f"{source}, line {number}: not an expression with its value")
        texts.append(text)
        labels.append(int(target))
    for number, (text, label) in enumerate(islice(zip(texts, labels, strict=True), CHECKED_LINES), 2):
        try:
            is_correct = evaluate(text) == label
        except (ValueError, IndexError, TypeError):
            is_correct = False
        if not is_correct:
            raise UsageError(f"{source}, line {number} is corrupt: its value is not {label}")
    return Texts.of(texts, labels)


def _tokenize(expression: bytes) -> bytes:
    """Return the tokens of an expression; anything else becomes 0, or more than END."""
    for operator in OPERATORS:
        # Each operator becomes one letter of _TOKENS: N, X, D or S.
        expression = expression.replace(operator, operator[-1:] if operator != b"[SM" else b"S")
    return expression.translate(_TOKENS, b" ()")
