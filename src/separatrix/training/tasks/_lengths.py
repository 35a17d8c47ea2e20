"""Tasks whose validation and test samples may be longer than their training samples."""

from __future__ import annotations

from typing import Any, ClassVar

from separatrix.core.parameters import Constraint, natural, text
from separatrix.training.tasks._base import Split, Task

MAX_LENGTH = 16384


def length(default: int) -> Any:
    """Declare a length of samples."""
    return natural(default, at_least=2, at_most=MAX_LENGTH)


class LengthTask(Task):
    """A task that is trained at one length and tested at others."""

    trained: int = length(16)
    """The length of training samples."""
    tested: int = length(64)
    """The length of validation and test samples."""
    also: str | None = text(None)
    """Further lengths at which a finished run is tested once, comma-separated: 64,256."""
    relations: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("trained", "tested"),
            lambda p: p.trained <= p.tested,
            lambda p: f"tested={p.tested} must be trained={p.trained} or more",
        ),
        Constraint(
            ("trained", "also"),
            lambda p: all(p.trained <= length <= MAX_LENGTH for length in parse_lengths(p.also)),
            lambda p: f"also={p.also} must be lengths from trained={p.trained} to {MAX_LENGTH}",
        ),
    )

    def length_in(self, split: Split) -> int:
        """Return the length of the samples of a split."""
        return self.trained if split is Split.TRAIN else self.tested

    def first_scored(self, split: Split) -> int:
        """Return the first scored position: longer samples are scored beyond the trained length only."""
        return 0 if self.length_in(split) == self.trained else self.trained

    def further_tasks(self) -> dict[int, Task]:
        values = {name: value for name, value in self.parameters.as_json().items() if name != "also"}
        return {length: self.read({**values, "tested": length}) for length in parse_lengths(self.also)}


def parse_lengths(words: str | None) -> list[int]:
    """Return comma-separated lengths; a word that is not a length becomes 0, which is out of range.

    >>> parse_lengths("64,256"), parse_lengths("64,x"), parse_lengths(None)
    ([64, 256], [64, 0], [])
    """
    # The limit of digits keeps `int` from parsing numbers of arbitrary size.
    most = len(str(MAX_LENGTH))
    return [
        int(word) if word.isascii() and word.isdigit() and len(word) <= most else 0
        for word in (words.split(",") if words is not None else ())
    ]
