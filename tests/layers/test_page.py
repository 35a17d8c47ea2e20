"""The examples of docs/layers.md run, one after the other, as a reader would."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "layers.md"


def test_the_examples_of_the_page_run() -> None:
    text = PAGE.read_text()
    examples = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(examples) == text.count("```python") == 6
    names: dict[str, Any] = {"__name__": "page"}
    for example in examples:
        exec(compile(example, str(PAGE), "exec"), names)


def test_the_page_is_linked() -> None:
    assert "(docs/layers.md)" in (PAGE.parents[1] / "README.md").read_text()
