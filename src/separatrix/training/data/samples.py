"""What a data set is made of once it is read: images, texts or one long stream of bytes, in three splits."""

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

    def __getitem__(self, chosen: slice | NDArray[np.int64]) -> Images:
        return Images(self.pixels[chosen], self.labels[chosen])

    def samples(self) -> Iterator[bytes]:
        """Each image as bytes."""
        return (pixel.tobytes() for pixel in self.pixels)


@dataclass(frozen=True)
class Texts:
    """Texts with labels, end to end in `symbols`: text i is symbols[starts[i] : starts[i+1]].

    A symbol is a byte of the text, or the number of a token where the data set has an alphabet of its own.
    """

    symbols: Bytes
    starts: NDArray[np.int64]
    labels: Labels

    @classmethod
    def of(cls, texts: Sequence[bytes], labels: Sequence[int]) -> Texts:
        """Texts from one bytes object each.

        >>> Texts.of([b"bad", b"good"], [0, 1]).starts.tolist()
        [0, 3, 7]
        """
        starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(texts), np.uint8), starts, np.array(labels, np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, chosen: NDArray[np.int64]) -> Texts:
        """Some of the texts.

        >>> bytes(Texts.of([b"bad", b"good"], [0, 1])[np.array([1, 0])].symbols)
        b'goodbad'
        """
        lengths = np.diff(self.starts)[chosen]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(starts[-1]) + np.repeat(self.starts[:-1][chosen] - starts[:-1], lengths)
        return Texts(self.symbols[places], starts, self.labels[chosen])

    def samples(self) -> Iterator[bytes]:
        """Each text as bytes."""
        whole, ends = self.symbols.tobytes(), self.starts.tolist()
        return (whole[first:last] for first, last in pairwise(ends))

    def first_symbols(self, length: int, filler: int = 0) -> Bytes:
        """The first `length` symbols of every text, (count, length); shorter ones are filled up at the end.

        >>> Texts.of([b"bad", b"good"], [0, 1]).first_symbols(4).tolist()
        [[98, 97, 100, 0], [103, 111, 111, 100]]
        """
        places = self.starts[:-1, None] + np.arange(length)
        there = places < self.starts[1:, None]
        if not len(self.symbols):
            return np.full(places.shape, filler, np.uint8)
        return np.where(there, self.symbols[np.where(there, places, 0)], np.uint8(filler))


@dataclass(frozen=True)
class Stream:
    """One long text as bytes, (count,), of which each is to be predicted from those before it."""

    symbols: Bytes

    def __len__(self) -> int:
        return len(self.symbols)

    def samples(self) -> Iterator[bytes]:
        """Nothing: a stream is cut by place, not into samples."""
        return iter(())


Kind = TypeVar("Kind", Images, Texts, Stream)


@dataclass(frozen=True)
class Splits(Generic[Kind]):
    """The three splits of a data set, and a digest of the files they were read from."""

    train: Kind
    validation: Kind
    test: Kind
    digest: str

    @property
    def sizes(self) -> dict[str, int]:
        """How many samples each split has; bytes for a stream."""
        return {"train": len(self.train), "validation": len(self.validation), "test": len(self.test)}

    def shared(self) -> int:
        """How many test samples are, byte for byte, among those for training or validation.

        Splits are disjoint by place; some data sets have the same image or text twice.
        """
        seen = {_mark(sample) for split in (self.train, self.validation) for sample in split.samples()}
        return sum(_mark(sample) in seen for sample in self.test.samples())


def _mark(sample: bytes) -> bytes:
    return sha256(sample).digest()
