"""Samples of data sets: images, texts or one long stream of bytes, in three splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Images:
    """Images with labels: `pixels` (count, height, width) or (count, height, width, 3), `labels` (count,)."""

    pixels: Bytes
    labels: Labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> Images:
        return Images(self.pixels[rows], self.labels[rows])

    def samples(self) -> Iterator[bytes]:
        """Yield each image as bytes."""
        return (image.tobytes() for image in self.pixels)


@dataclass(frozen=True)
class Texts:
    """Texts with labels, concatenated in `symbols`: text i is symbols[starts[i] : starts[i+1]].

    A symbol is a byte of the text, or the number of a token if the data set has its own alphabet.
    """

    symbols: Bytes
    starts: NDArray[np.int64]
    labels: Labels

    @classmethod
    def of(cls, texts: Sequence[bytes], labels: Sequence[int]) -> Texts:
        """Concatenate texts.

        >>> Texts.of([b"bad", b"good"], [0, 1]).starts.tolist()
        [0, 3, 7]
        """
        starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(texts), np.uint8), starts, np.array(labels, np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: NDArray[np.int64]) -> Texts:
        """Select texts.

        >>> bytes(Texts.of([b"bad", b"good"], [0, 1])[np.array([1, 0])].symbols)
        b'goodbad'
        """
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        indices = np.arange(starts[-1]) + np.repeat(self.starts[:-1][rows] - starts[:-1], lengths)
        return Texts(self.symbols[indices], starts, self.labels[rows])

    def samples(self) -> Iterator[bytes]:
        """Yield each text as bytes."""
        symbols, starts = self.symbols.tobytes(), self.starts.tolist()
        return (symbols[first:last] for first, last in pairwise(starts))

    def first_symbols(self, length: int, filler: int = 0) -> Bytes:
        """Return the first `length` symbols of every text, (count, length); shorter texts are padded.

        >>> Texts.of([b"bad", b"good"], [0, 1]).first_symbols(4).tolist()
        [[98, 97, 100, 0], [103, 111, 111, 100]]
        """
        indices = self.starts[:-1, None] + np.arange(length)
        exists = indices < self.starts[1:, None]
        if not len(self.symbols):
            return np.full(indices.shape, filler, np.uint8)
        return np.where(exists, self.symbols[np.where(exists, indices, 0)], np.uint8(filler))


@dataclass(frozen=True)
class Stream:
    """One long text as bytes, (count,), in which each byte is predicted from the bytes before it."""

    symbols: Bytes

    def __len__(self) -> int:
        return len(self.symbols)

    def samples(self) -> Iterator[bytes]:
        """Yield nothing: a stream is split by position and has no separate samples."""
        return iter(())


Kind = TypeVar("Kind", Images, Texts, Stream)


@dataclass(frozen=True)
class Splits(Generic[Kind]):
    """The three splits of a data set, and a digest of their files."""

    train: Kind
    validation: Kind
    test: Kind
    digest: str

    @property
    def sizes(self) -> dict[str, int]:
        """The number of samples of each split; bytes for a stream."""
        return {"train": len(self.train), "validation": len(self.validation), "test": len(self.test)}

    def count_shared(self) -> int:
        """Return how many test samples also occur, byte for byte, in the other splits.

        Splits are disjoint by position, but some data sets contain the same image or text twice.
        """
        other_samples = (sample for split in (self.train, self.validation) for sample in split.samples())
        # A set of digests is small; a set of the samples would hold a second copy of the data.
        digests = {sha256(sample).digest() for sample in other_samples}
        return sum(sha256(sample).digest() in digests for sample in self.test.samples())
