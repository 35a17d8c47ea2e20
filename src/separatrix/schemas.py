"""The JSON documents that commands print, by name, with their JSON Schema (draft 2020-12).

The result's `as_json`, its .json file and its command's --json are one document. A key that is here stays in
later versions; these may add more.

>>> sorted(schema("verdict")["required"])[:4]
['auc', 'bits', 'construction', 'delta']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from separatrix.claims import Entry, Ledger
from separatrix.claims.paper import Reproduction
from separatrix.core.documents import json_schema
from separatrix.core.result import Result
from separatrix.core.schemas import lists, questions
from separatrix.exact.proofs import Proof, Proofs
from separatrix.exact.proofs.uniform import UniformProof
from separatrix.exact.verdicts import Readers, Verdict, Verdicts
from separatrix.sweeps.estimate import Estimate
from separatrix.sweeps.progress import Progress
from separatrix.sweeps.store.compare import ComparedSweeps, StoreReport
from separatrix.sweeps.store.export import StoredVerdict, StoredWork
from separatrix.sweeps.store.maintenance import StoreCopy, StoreHealth, UnreadableStore
from separatrix.training.data import DataFloors, DataSetState, FetchedDataSet


@dataclass(frozen=True)
class DocumentKind:
    """A kind of document: its type, the command that prints it, and a description."""

    type: Any
    """The class or type; "module:Class" in `separatrix` for a class whose module takes long to import."""
    command: str
    """What prints it with --json; PAGE where none does."""
    about: str


PAGE = "explore"
"""The command whose page asks for documents that no command prints."""

DOCUMENTS: Mapping[str, DocumentKind] = {
    "verdict": DocumentKind(Verdict, "verdict", "a verdict on one mechanism"),
    "verdicts": DocumentKind(Verdicts.document_type(), "verdict", "verdicts on several mechanisms"),
    "check": DocumentKind(questions.Check, "check", "what the checker says of a certificate"),
    "proof": DocumentKind(Proof, "prove", "a verdict for every n, proved, or the n at which it fails"),
    "proofs": DocumentKind(Proofs.document_type(), "prove", "verdicts for every n, for several mechanisms"),
    "uniform_proof": DocumentKind(
        list[UniformProof] | UniformProof, "prove --for", "a bound of P for every n and ranges of parameters, proved"
    ),
    "readers": DocumentKind(Readers, "readers", "what better readers could do"),
    "map": DocumentKind("analysis.maps:Map", "map", "a quantity over two parameters"),
    "boundary": DocumentKind("analysis.maps:Boundary", "boundary", "where P passes a level"),
    "boundary_curve": DocumentKind(
        "analysis.maps:BoundaryCurve", "boundary --over", "a boundary against a second parameter"
    ),
    "scaling": DocumentKind("analysis.laws:Scaling", "scaling", "how a quantity grows"),
    "scalings": DocumentKind("analysis.laws:Scalings", "scaling", "how a quantity grows, for several mechanisms"),
    "illustration": DocumentKind(
        "analysis.cards.illustration:Illustration", PAGE, "a picture of D0, D1, attention and neurons"
    ),
    "card": DocumentKind("analysis.cards.card:Card", "assess", "the report card of a mechanism"),
    "atlas": DocumentKind("analysis.cards.atlas:Atlas", "atlas", "every mechanism on every construction"),
    "bench": DocumentKind("analysis.costs.curves:Bench", "bench", "cost on this machine"),
    "choice": DocumentKind("analysis.choose:Choice", "choose", "which mechanisms still see what, at which cost"),
    "search": DocumentKind("analysis.search:Search", "search", "instances that separate two mechanisms"),
    "search_check": DocumentKind("analysis.search:FindingsCheck", "search --check", "findings, verified"),
    "claim": DocumentKind(Entry, "claim", "a claim, and the result of its check"),
    "ledger": DocumentKind(Ledger.document_type(), "reproduce", "every claim: ledger.json of a reproduction"),
    "reproduce": DocumentKind(Reproduction, "reproduce", "the files that a reproduction wrote"),
    "learned": DocumentKind(
        "analysis.evidence.training_result:TrainingResult", "learn", "what training on a task shows"
    ),
    "learned_report": DocumentKind(
        "analysis.evidence.experiments:TrainingReport", "learn", "the default evidence report, or a plan"
    ),
    "published": DocumentKind(
        "analysis.evidence.published:ReproductionLedger", "learn --published", "published numbers, measured again"
    ),
    "sweep": DocumentKind(Progress, "sweep", "the result of a sweep"),
    "estimate": DocumentKind(Estimate, "sweep --dry-run", "an estimate for a sweep"),
    "results": DocumentKind(list[StoredVerdict], "results", "stored verdicts"),
    "work": DocumentKind(list[StoredWork], "results --kind", "stored work of another kind"),
    "report": DocumentKind(StoreReport, "report", "what a report of a store wrote"),
    "compare": DocumentKind(ComparedSweeps, "compare", "the differences of two sweeps"),
    "store_check": DocumentKind(
        StoreHealth | UnreadableStore, "store check", "the content of a store, and whether it is sound"
    ),
    "store_repair": DocumentKind(StoreHealth, "store repair", "the intact rows of a store"),
    "store_backup": DocumentKind(StoreCopy, "store backup", "the place of a copy"),
    "data_sets": DocumentKind(list[DataSetState], "data", "data sets, and which are on this machine"),
    "data_set": DocumentKind(DataSetState, "data show", "one data set"),
    "data_floors": DocumentKind(DataFloors, "data floors", "scores without attention"),
    "data_fetch": DocumentKind(FetchedDataSet, "data fetch", "a data set that was fetched"),
    "mechanisms": DocumentKind(
        list[lists.ListedMechanism] | lists.ListedMechanism, "list mechanisms", "all mechanisms, or one"
    ),
    "lattice": DocumentKind(list[lists.Edge], "list mechanisms --lattice", "which is a special case of which"),
    "constructions": DocumentKind(
        list[lists.ListedConstruction] | lists.ListedConstruction, "list constructions", "all constructions, or one"
    ),
    "claims": DocumentKind(list[lists.ListedClaim] | lists.ListedClaim, "list claims", "all claims, or one"),
    "tasks": DocumentKind(list[lists.ListedTask] | lists.ListedTask, "list tasks", "all tasks, or one"),
    "engines": DocumentKind(list[lists.ListedEngine] | lists.ListedEngine, "list engines", "all engines, or one"),
    "published_numbers": DocumentKind(
        list[lists.ListedNumber] | lists.ListedNumber, "list published", "published numbers, or one"
    ),
    "plans": DocumentKind(list[lists.ListedPlan] | lists.ListedPlan, "list plans", "all plans, or one"),
    "sweeps": DocumentKind(list[lists.ListedSweep], "list sweeps", "the sweeps of a store"),
    "schemas": DocumentKind(list[lists.ListedSchema], "schema", "the kinds of documents"),
}
"""By the name of their schema; that of a result in Python is its `kind`."""


@cache
def _made(name: str) -> dict[str, Any]:
    found = DOCUMENTS[name]
    where = f"separatrix {found.command} --json prints it"
    if found.command == PAGE:
        where = f"the page of separatrix {PAGE} asks for it"
    about = f"{found.about[0].upper()}{found.about[1:]}, as {where}."
    return json_schema(_load(found.type), name, about)


def _load(kind: Any) -> Any:
    if not isinstance(kind, str):
        return kind
    module, name = kind.split(":")
    loaded = getattr(import_module(f"separatrix.{module}"), name)
    return loaded.document_type() if issubclass(loaded, Result) else loaded


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of one kind of document, by its name in DOCUMENTS."""
    return dict(_made(name))


__all__ = ["DOCUMENTS", "DocumentKind", "schema"]
