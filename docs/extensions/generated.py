"""Replace placeholders in pages, such as `<!-- generated: commands -->`, by generated text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import command_pages
import listed_pages
import schema_pages
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ROOT = Path(__file__).parents[2]


def page_of_the_root(name: str) -> str:
    """Return a page of the root folder without its title, with links relative to `docs`."""
    text = (ROOT / name).read_text().split("\n", 1)[1]
    return re.sub(r"\]\((?!https?:|#|docs/)", "](../", text).replace("](docs/", "](")


PARTS: dict[str, Callable[[], str]] = {
    "commands": command_pages.commands,
    "constructions": listed_pages.constructions,
    "mechanisms": listed_pages.mechanisms,
    "tasks": listed_pages.tasks,
    "claims": listed_pages.claims,
    "engines": listed_pages.engines,
    "schemas": schema_pages.schemas,
    "contributing": lambda: page_of_the_root("CONTRIBUTING.md"),
    "changelog": lambda: page_of_the_root("CHANGELOG.md"),
}
PLACE = re.compile(r"^<!-- generated: (\S+) -->$", re.MULTILINE)


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    def part(place: re.Match[str]) -> str:
        if place[1] not in PARTS:
            raise ExtensionError(f"{page}: unknown generated part {place[1]}")
        return PARTS[place[1]]()

    source[0] = PLACE.sub(part, source[0])


def outdated(app: Sphinx, env: Any, *changes: set[str]) -> list[str]:
    """Return the pages with generated parts, which are always rebuilt: the program may have changed."""
    return [page for page in env.found_docs if PLACE.search(Path(env.doc2path(page)).read_text())]


def published(app: Sphinx, failed: Exception | None) -> None:
    if failed is None and app.builder.format == "html":
        schema_pages.write(Path(app.outdir))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", fill)
    app.connect("env-get-outdated", outdated)
    app.connect("build-finished", published)
    app.setup_extension("myst_parser")
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
