"""docs/data.md: its examples run, it knows every data set, and it is linked."""

from __future__ import annotations

import re
from pathlib import Path

from separatrix.datasets import DATASETS

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def test_the_examples_of_the_page_run() -> None:
    text = PAGE.read_text()
    examples = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(examples) == text.count("```python") == 2
    for example in examples:
        exec(compile(example, str(PAGE), "exec"), {"__name__": "page"})


def test_the_table_of_the_page_names_every_data_set_and_its_package() -> None:
    rows = {
        row.split("|")[1].strip(" `"): row for row in PAGE.read_text().splitlines() if row.startswith("| `")
    }
    for name, each in DATASETS.items():
        assert each.package is None or any(each.package.title in row for row in PAGE.read_text().splitlines())
        assert name in rows


def test_the_page_is_linked() -> None:
    assert "(docs/data.md)" in (PAGE.parents[1] / "README.md").read_text()
