"""The JSON that commands print, as types and as JSON Schema (draft 2020-12).

What a result's `as_json` returns, its file .json and its command's --json are one document. A key that is
here stays in later versions; these may have more.

>>> sorted(schema("verdict")["required"])[:4]
['bits', 'construction', 'delta', 'distinguish']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from separatrix.core.schemas import evidence, lists, mechanisms, questions, storage
from separatrix.core.schemas._base import json_schema


@dataclass(frozen=True)
class Document:
    """One kind of document."""

    type: Any
    command: str
    """What prints it with --json; PAGE where none does."""
    about: str


PAGE = "explore"
"""The command whose page asks for documents that no command prints."""

DOCUMENTS: Mapping[str, Document] = {
    "verdict": Document(questions.Verdict, "verdict", "a verdict on one mechanism"),
    "verdicts": Document(
        list[questions.Verdict | questions.Refused], "verdict", "verdicts on several mechanisms"
    ),
    "check": Document(questions.Check, "check", "what the checker says of a certificate"),
    "readers": Document(questions.Readers, "readers", "what better readers could do"),
    "map": Document(questions.Map, "map", "a quantity over two parameters"),
    "boundary": Document(questions.Boundary, "boundary", "where P passes a level"),
    "boundary_curve": Document(
        questions.BoundaryCurve, "boundary --over", "a boundary against a second parameter"
    ),
    "scaling": Document(questions.Scaling, "scaling", "how a quantity grows"),
    "scalings": Document(questions.Scalings, "scaling", "how a quantity grows, for several mechanisms"),
    "illustration": Document(questions.Illustration, PAGE, "a picture of D0, D1, attention and neurons"),
    "card": Document(mechanisms.Card, "assess", "the report card of a mechanism"),
    "atlas": Document(list[mechanisms.AtlasCell], "atlas", "every mechanism on every construction"),
    "bench": Document(list[mechanisms.Cost | mechanisms.NotTimed], "bench", "cost on this machine"),
    "choice": Document(mechanisms.Choice, "choose", "which mechanisms still see what, at which cost"),
    "search": Document(mechanisms.Search, "search", "instances that separate two mechanisms"),
    "search_check": Document(mechanisms.SearchCheck, "search --check", "findings computed again"),
    "claim": Document(evidence.ClaimEntry, "claim", "a claim, and how its check came out"),
    "ledger": Document(list[evidence.ClaimEntry], "reproduce", "every claim: ledger.json of a reproduction"),
    "reproduce": Document(evidence.Reproduced, "reproduce", "what a reproduction wrote"),
    "learned": Document(evidence.Learned, "learn", "what training on a task shows"),
    "learned_report": Document(evidence.LearnedReport, "learn", "the default evidence report, or a plan"),
    "published": Document(evidence.Published, "learn --published", "published numbers, measured again"),
    "sweep": Document(storage.Sweep, "sweep", "how a sweep ended"),
    "estimate": Document(storage.Estimate, "sweep --dry-run", "what lies before a sweep"),
    "results": Document(list[storage.Cell], "results", "stored verdicts"),
    "work": Document(list[storage.WorkCell], "results --kind", "stored work of another kind"),
    "report": Document(storage.ReportWritten, "report", "what a report of a store wrote"),
    "compare": Document(storage.Compared, "compare", "how two sweeps differ"),
    "store_check": Document(
        storage.StoreHealth | storage.Unreadable, "store check", "what a store holds, and whether it is sound"
    ),
    "store_repair": Document(storage.StoreHealth, "store repair", "what was saved of a store"),
    "store_upgrade": Document(storage.StoreUpgraded, "store upgrade", "versions of a store"),
    "store_backup": Document(storage.StoreCopied, "store backup", "where a copy is"),
    "data_sets": Document(list[evidence.DataSet], "data", "data sets, and which are there"),
    "data_set": Document(evidence.DataSet, "data show", "one data set"),
    "data_floors": Document(evidence.DataFloors, "data floors", "what can be had without attention"),
    "data_fetch": Document(evidence.FetchedDataSet, "data fetch", "a data set that was fetched"),
    "mechanisms": Document(
        list[lists.ListedMechanism] | lists.ListedMechanism, "list mechanisms", "all mechanisms, or one"
    ),
    "lattice": Document(list[lists.Edge], "list mechanisms --lattice", "which is a special case of which"),
    "constructions": Document(
        list[lists.ListedConstruction] | lists.ListedConstruction,
        "list constructions",
        "all constructions, or one",
    ),
    "claims": Document(list[lists.ListedClaim] | lists.ListedClaim, "list claims", "all claims, or one"),
    "tasks": Document(list[lists.ListedTask] | lists.ListedTask, "list tasks", "all tasks, or one"),
    "engines": Document(list[lists.ListedEngine] | lists.ListedEngine, "list engines", "all engines, or one"),
    "published_numbers": Document(
        list[lists.ListedNumber] | lists.ListedNumber, "list published", "published numbers, or one"
    ),
    "plans": Document(list[lists.ListedPlan] | lists.ListedPlan, "list plans", "all plans, or one"),
    "sweeps": Document(list[lists.ListedSweep], "list sweeps", "the sweeps of a store"),
    "schemas": Document(list[lists.ListedSchema], "schema", "the kinds of documents"),
}
"""By the name of their schema; that of a result in Python is its `kind`."""


@cache
def _made(name: str) -> dict[str, Any]:
    found = DOCUMENTS[name]
    where = f"separatrix {found.command} --json prints it"
    if found.command == PAGE:
        where = f"the page of separatrix {PAGE} asks for it"
    about = f"{found.about[0].upper()}{found.about[1:]}, as {where}."
    return json_schema(found.type, name, about)


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of one kind of document, by its name in DOCUMENTS."""
    return dict(_made(name))


__all__ = ["DOCUMENTS", "Document", "schema"]
