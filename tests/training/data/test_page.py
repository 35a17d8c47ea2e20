"""docs/data.md lists every data set."""

from __future__ import annotations

from pathlib import Path

from separatrix.training.data import DATASETS

PAGE = Path(__file__).parents[3] / "docs" / "data.md"


def test_the_table_of_the_page_names_every_data_set_and_its_package() -> None:
    rows = {row.split("|")[1].strip(" `"): row for row in PAGE.read_text().splitlines() if row.startswith("| `")}
    for name, dataset in DATASETS.items():
        assert dataset.package is None or any(dataset.package.title in row for row in PAGE.read_text().splitlines())
        assert name in rows
