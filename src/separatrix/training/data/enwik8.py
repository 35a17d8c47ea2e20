"""enwik8: the first 10^8 bytes of the English Wikipedia."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from separatrix.training.data._base import DataSet
from separatrix.training.data.floors import Floor, ngram_floors
from separatrix.training.data.folder import DataFile
from separatrix.training.data.packages import Package
from separatrix.training.data.samples import Splits, Stream


class Enwik8Data(DataSet[Stream]):
    """10^8 bytes, each to be predicted from the bytes before it.

    One stream of bytes, each to be predicted from the bytes before it. The usual split by position:
    90,000,000 for training, 5,000,000 for validation, 5,000,000 for test.
    """

    name = "enwik8"
    title = "the first 100,000,000 bytes of the English Wikipedia"
    source = "Mahoney, 2006 (Large Text Compression Benchmark), as enwik8, enwik8.gz or enwik8.zip"
    classes = 256
    measure = "bits a byte"
    files = (DataFile("enwik8", 10**8, "sha256:2b49720ec4d78c3c9fabaee6e4179a5e997302b3a70029f30f2d582218c024a8"),)
    package = Package(
        "PyPI minGRU-pytorch 0.2.1",
        "mingru_pytorch-0.2.1.tar.gz",
        36_568_913,
        "fc9b278b4e04db930a5cd4cdab36e2713b1d6e14084269b161d4f133819e758d",
        {"mingru_pytorch-0.2.1/data/enwik8.gz": "enwik8.gz"},
    )

    def parse(self, contents: Mapping[str, bytes]) -> tuple[Stream, Stream, Stream]:
        symbols = np.frombuffer(contents["enwik8"], np.uint8)
        first, second = len(symbols) * 90 // 100, len(symbols) * 95 // 100
        return Stream(symbols[:first]), Stream(symbols[first:second]), Stream(symbols[second:])

    def floors(self, splits: Splits[Stream]) -> tuple[Floor, ...]:
        return ngram_floors(splits.train.symbols, splits.validation.symbols, splits.test.symbols)
