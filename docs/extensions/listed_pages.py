"""Pages with the content of `separatrix list`: constructions, mechanisms, tasks, claims and engines."""

from __future__ import annotations

import re
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from separatrix import catalog
from separatrix.training.tasks import REAL_TASKS, TASKS


def constructions() -> str:
    return "\n".join(_construction(row) for row in catalog.list_constructions())


def _construction(row: dict[str, Any]) -> str:
    more = catalog.describe_construction(row["name"])
    reference = " ".join(f"{name}={value}" for name, value in row["reference"].items())
    facts = {"parameters": _code(row["parameters"]), "reference point": f"`{reference}`"}
    facts["source"] = prose(row["provenance"])
    return f"## {row['name']}\n\n**{prose(row['title'])}** {prose(row['description'])}\n\n{_facts(facts)}\n" + _try(
        more["try"]
    )


def mechanisms() -> str:
    rows = sorted(catalog.list_mechanisms(), key=lambda row: row["family"])
    return "\n".join(
        f"## {_heading(family)}\n\n" + "\n".join(_mechanism(row) for row in members)
        for family, members in groupby(rows, key=lambda row: row["family"])
    )


def _mechanism(row: dict[str, Any]) -> str:
    more = catalog.describe_mechanism(row["name"])
    facts = {"formula": f"`{row['formula']}`", "parameters": _code(row["parameters"])}
    facts["source"] = prose(row["source"])
    if more.get("extras"):
        facts["additional inputs"] = _code(more["extras"])
    return f"### {row['name']}\n\n{_facts(facts)}\n"


def tasks() -> str:
    return "\n".join(_task(kind) for kind in (*TASKS.values(), *REAL_TASKS.values()))


def _task(kind: Any) -> str:
    facts = {"score": kind.metric.value, "source": prose(kind.provenance)}
    facts["parameters"] = _code(list(kind.schema.model_fields))
    return f"## {kind.name}\n\n**{prose(kind.title)}** {prose(kind.description)}\n\n{_facts(facts)}\n"


def claims() -> str:
    head = "| claim | tag | section | statement |\n|---|---|---|---|\n"
    return head + "\n".join(
        f"| `{row['name']}` | [{row['provenance']}] | {_section(row['place'])} | {prose(row['statement'])} |"
        for row in catalog.list_claims()
    )


def engines() -> str:
    head = "| engine | description | draws signs | proves |\n|---|---|---|---|\n"
    return head + "\n".join(
        f"| `{row['name']}` | {row['title']} | {_yes(row['draws'])} | {_yes(row['proves'])} |"
        for row in catalog.list_engines()
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _facts(facts: dict[str, str]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in facts.items())


def _try(commands: list[str]) -> str:
    return "\n```console\n" + "\n".join(f"$ {command}" for command in commands) + "\n```\n"


def _code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _heading(text: str) -> str:
    return text[:1].upper() + text[1:]


def prose(text: str) -> str:
    """Convert plain text to Markdown: escape markup, and link sections of the theory and arXiv."""
    kept = re.split(r"(`[^`]*`)", text)
    plain = [part if part.startswith("`") else re.sub(r"([<*_|\[\]])", r"\\\1", part) for part in kept]
    linked = re.sub(r"docs/theory\.md (\d+(?:\.\d+)?)", lambda match: f"theory {_section(match[1])}", "".join(plain))
    return re.sub(r"arXiv (\d{4}\.\d{5})", r"[arXiv \1](https://arxiv.org/abs/\1)", linked)


@cache
def _anchors() -> dict[str, str]:
    """Return the anchor of each numbered section of the theory."""
    text = (Path(__file__).parents[1] / "theory.md").read_text()
    titles = re.findall(r"^##+ ((\d+(?:\.\d+)?)\.? .*)$", text, re.MULTILINE)
    return {number: re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title, number in titles}


def _section(number: str) -> str:
    return f"[{number}](../theory.md#{_anchors()[number]})"
