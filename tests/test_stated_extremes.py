"""Every "up to", "from", "best" or "least" with a number in the documentation is computed here.

`COMPUTED` holds a pattern for each such sentence and the function that computes its numbers over all cases
the sentence speaks of. A sentence with such a word and a number that is in no table fails
`test_no_extreme_is_stated_without_being_computed`: add it to `COMPUTED`, or to `OTHERWISE` with the reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import separatrix as sx
from pages import DOCS, ROOT
from separatrix.claims import boundary, claim_named, plain, proof, theorem
from separatrix.claims._base import BASE
from separatrix.claims._tools import on_grid
from separatrix.constructions.plain import Plain
from separatrix.constructions.spike import Spike
from separatrix.exact.verdicts.lost_formats import LARGEST, lost_at, lost_from
from separatrix.mechanisms import Linear, Softmax, Taylor

THEORY = DOCS / "theory.md"
PAGES = (
    ROOT / "README.md",
    THEORY,
    *(DOCS / f"{name}.md" for name in ("blind", "certificates", "explorer", "gallery")),
    *sorted(DOCS.glob("tutorial-*.md")),
)
"""Pages whose numbers are computed; those on data and on training quote recorded runs, which the tests of
`datasets` and `evidence` compare."""
EXTREME = re.compile(
    r"\b(up to|down to|from|best|until|beyond|at most|at least|at worst|at best|largest|smallest|least"
    r"|or more|or less|no more than|never)\b"
)
NUMBER = re.compile(r"(?<![A-Za-z_\d.-])\d")
NAMES = re.compile(r"arXiv \d+\.\d+|\b[Dad][01]\b|section \d[\d.]*|\(\d(?:\.\d+)?\)|\btheory \d[\d.]*")
"""Digits that are not quantities."""


def prose(page: Path) -> str:
    """A page without code, displayed formulas and link targets, as one line for each block."""
    text = re.sub(r"^```.*?^```$", "\n\n", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    blocks = re.split(r"\n\s*\n|\n(?=[-*|#] ?)", text)
    return "\n".join(" ".join(block.split()) for block in blocks)


def sentences(page: Path) -> Iterator[str]:
    for block in prose(page).splitlines():
        yield from re.split(r"(?<=[.:;?!])\s+(?=[A-Z\[*\"`(])", block)


def states_an_extreme(sentence: str) -> bool:
    """Whether it has such a word and a number outside formulas and code."""
    words = NAMES.sub("", re.sub(r"\$[^$]*\$|`[^`]*`", "", sentence))
    return bool(EXTREME.search(words) and NUMBER.search(words))


def measured(name: str, key: str) -> list[float]:
    found = claim_named(name).check()
    values = [each.measured[key] for each in found.points if key in each.measured]
    assert values
    return [float(value) for value in values]


def at_most(value: float, digits: int) -> str:
    """Rounded up, as "or less" needs it."""
    return f"{math.ceil(value * 10**digits) / 10**digits:.{digits}f}"


def at_least(value: float, digits: int) -> str:
    """Rounded down, as "or more" needs it."""
    return f"{math.floor(value * 10**digits) / 10**digits:.{digits}f}"


def least_m() -> tuple[str, ...]:
    return (at_most(max(measured("width", "m_over_log")), 2),)


def failures_of_the_theorem() -> tuple[str, ...]:
    return (at_most(max(measured("theorem", "largest_over_delta")), 2),)


def tokens_in_a_block() -> tuple[str, ...]:
    """Over every power of ten at every setting, by bits of its own."""
    exponents = range(296)
    found = []
    for setting in theorem.THEOREM_SETTINGS:
        for delta in theorem.THEOREM_DELTAS:
            at = theorem.admissible(setting, delta)
            sizes = [(at["d"] - 2) * 10**e for e in exponents]
            worst = np.maximum.reduce(list(theorem.failures(at, sizes).values()))
            found.append(max((e for e in exponents if worst[e] > delta), default=-1) + 1)
    return str(10 ** min(found)), f"10^{max(found)}"


def failure_without_a_hypothesis() -> tuple[str, ...]:
    return (str(math.floor(min(measured("hypotheses-needed", "probability")) / 0.01 + 1e-9)),)


def hoeffding() -> tuple[str, ...]:
    ratios, needed = [], 0
    for b in ("0.2", "0.5"):
        widths = list(range(12, 1003))
        for mechanism in (Softmax(), Linear()):
            at = {**proof.PROOF_SETTING, "b": b, "m": 1}
            sizes = [(d - 2) * proof.BLOCK for d in widths]
            p0 = on_grid(mechanism, at, d=widths, n=sizes).p0
            ratios += [math.exp(-(d - 2) / (200 * float(b) ** 2)) / p for d, p in zip(widths, p0, strict=True)]
    fires = [
        (d, float(on_grid(Softmax(), at, d=[d], n=[(d - 2) * proof.BLOCK]).fire_d0[0]))
        for d in range(4, 74)
        for at in ({**proof.PROOF_SETTING, "b": "0.2", "m": 17},)
    ]
    needed = max(d for d, p in fires if p > 0.01) + 1
    asked = next(d for d in range(4, 200) if d - 2 >= 200 * 0.2**2 * math.log(4 * 17 / 0.01))
    return f"{min(ratios):.1f}", f"{round(max(ratios), -3):,.0f}", str(asked), str(needed)


def all_plus() -> tuple[str, ...]:
    return tuple(at_least(float(1 - (1 - Fraction(1, 2**d)) ** m), 4) for d, m in ((4, 80), (6, 300)))


def best_tau() -> tuple[str, ...]:
    tuned = sx.readers("spike", "linear", {**BASE, "n": 1000}).threshold
    assert tuned is not None
    return (f"{tuned.outcome.distinguish:.2f}",)


def no_format_loses_softmax() -> tuple[str, ...]:
    found = lost_from(sx.verdict("spike", "softmax").construction, Softmax())
    assert set(found.values()) == {None}
    return (f"10^{round(math.log10(LARGEST))}",)


def lost_in_bf16() -> tuple[str, ...]:
    """Every admissible n up to twice the one stated; beyond, the difference falls below the last place."""
    at = sx.verdict("spike", "linear").construction
    found = lost_from(at, Linear())["bf16"]
    assert found is not None
    lost = {n: lost_at(Spike.read({**Spike.example, "n": n}), Linear())["bf16"] for n in range(100, 2 * found, 100)}
    least = max(n for n, is_lost in lost.items() if not is_lost) + 100
    assert least == found
    return str(least), *(power.replace("10^40", "10⁴⁰") for power in no_format_loses_softmax())


def degree_below_the_formula() -> tuple[str, ...]:
    shifts = measured("critical-degree", "shift")
    assert len(shifts) == 6
    rounded = {f"{-shift:.1f}" for shift in shifts}
    assert len(rounded) == 1
    return (
        *rounded,
        f"10^{round(math.log10(boundary.DEGREE_SIZES[0]))}",
        f"10^{round(math.log10(boundary.DEGREE_SIZES[-1]))}",
    )


def taylor_blind_from() -> tuple[str, ...]:
    """Every multiple of 100 up to 100 (R/r)^order, from where on it is proved."""
    found = []
    for order in (2, 4):
        sizes = range(100, 100 * 5**order + 1, 100)
        p = on_grid(Taylor(order=order), BASE, n=[*sizes]).distinguish
        found.append(str(max(n for n, each in zip(sizes, p, strict=True) if each > 0.01) + 100))
    return tuple(found)


@cache
def plain_case() -> dict[str, Any]:
    """P of both units at every n up to 2048, and what follows; beyond, by the bounds of the claim."""
    sizes = range(3, 2049)
    m = [math.ceil(math.log2(n / 0.01)) for n in sizes]
    softmax, linear = (
        dict(zip(sizes, on_grid(unit, {}, Plain, n=[*sizes], m=m).distinguish, strict=True))
        for unit in (Softmax(), Linear())
    )
    assert max(plain.bounds_beyond(2048)) < 0.01
    above = [n for n in sizes if linear[n] > 0.5]
    marks = "".join("x" if linear[n] > 0.5 else " " for n in sizes)
    longest = max(marks.split(), key=len)
    start = sizes[0] + marks.index(longest)
    best = max(sizes, key=lambda n: float(linear[n]))
    keeps = max(n for n in sizes if softmax[n] < 0.99) + 1
    return {
        "above": (str(start), str(start + len(longest) - 1), str(above[-1])),
        "best": (f"{linear[best]:.4f}", str(best)),
        "blind": str(max(n for n in sizes if linear[n] > 0.01) + 1),
        "keeps": str(keeps),
        "partial": [str(n) for n in range(keeps - 7, keeps) if softmax[n] < 0.99],
    }


def plain_numbers() -> tuple[str, ...]:
    found = plain_case()
    return (*found["above"], *found["best"], found["blind"], found["keeps"], *found["partial"])


def routing_share() -> tuple[str, ...]:
    return (at_least(min(measured("routing-degree", "softmax")), 3),)


def recall_past_the_state() -> tuple[str, ...]:
    return (at_most(max(measured("recall-state", "past")), 2),)


def crossing_at_a_thousand() -> tuple[str, ...]:
    (found,) = sx.boundary("spike", "softmax", {**BASE, "n": 1000, "a1": "0.5:1.5"}).crossings
    limit = (-0.3 + math.sqrt(0.3**2 + 4)) / 2  # the root of a1(a1 + 0.3) = 1
    return f"{found.middle:.2f}", f"{limit:.3f}"


def scores_at_300_digits() -> tuple[str, ...]:
    scores = measured("any-n", "scores")
    assert max(scores) <= 1.5 * min(scores)
    return ()


COMPUTED: tuple[tuple[Path, str, Callable[[], tuple[str, ...]]], ...] = (
    (THEORY, r"the least m that suffices was ([\d.]+) log\(n/delta\) or less in all", least_m),
    (THEORY, r"At 10\^300 it is at most half as many scores again", scores_at_300_digits),
    (THEORY, r"each of the four failures has probability ([\d.]+) delta or less", failures_of_the_theorem),
    (THEORY, r"in a block that is large enough is from (\d+) to (10\^\d+), the latter", tokens_in_a_block),
    (THEORY, r"make a failure at least (\d+) times as likely as delta", failure_without_a_hypothesis),
    (
        THEORY,
        r"is ([\d.]+) to ([\d,]+) times the exact one over all d from 12 to 1002 \(b = 0.2 and 0.5\): "
        r"at delta = 0.01 and b = 0.2 the proof requires d = (\d+), and d = (\d+) is enough",
        hoeffding,
    ),
    (THEORY, r"or more, ([\d.]+) at d = 4, m = 80 and ([\d.]+) at d = 6, m = 300", all_plus),
    (THEORY, r"m = 12, n = 1000 the best of all tau reaches P = ([\d.]+)\.", best_tau),
    (THEORY, r"no such n was found up to (10\^\d+)\.", no_format_loses_softmax),
    (
        DOCS / "tutorial-engineer.md",
        r"For linear attention that is n = (\d+), far below 131,072; for softmax none was found up to "
        r"n = (10⁴⁰)",
        lost_in_bf16,
    ),
    (THEORY, r"measured ([\d.]+) below that at six n from (10\^\d+) to (10\^\d+);", degree_below_the_formula),
    (THEORY, r"the least from which on it is blind is (\d+) at order 2 and (\d+) at order 4\.", taylor_blind_from),
    (
        THEORY,
        r"linear has P > 1/2 at every n from (\d+) to (\d+) and at some up to n = (\d+) "
        r"\(at best ([\d.]+), at n = (\d+)\) and is blind from n = (\d+) on; "
        r"softmax distinguishes from n = (\d+) on, and is still partial at "
        r"(\d+), (\d+) and (\d+)\.",
        plain_numbers,
    ),
    (THEORY, r"linear succeeds up to n = (\d+) only in", lambda: plain_case()["above"][2:]),
    (THEORY, r"summed over multiples of n: ([\d.]+) or more at n = 8 and 12\.", routing_share),
    (THEORY, r"P is ([\d.]+) or less \(sampled\)", recall_past_the_state),
    (THEORY, r"far from its limit: ([\d.]+) against ([\d.]+) at n = 1000", crossing_at_a_thousand),
)

PROVED = "proved in the text"
DEFINED = "says what is asked for, or what was tried, and not what came out"
CLAIM = "the claim named there has these numbers as its limits and fails beyond them"
ELSEWHERE = "compared by another test"

OTHERWISE: tuple[tuple[str, str], ...] = (
    (r"Of the \d+ checked statements", ELSEWHERE),
    (r"is reported as undecided, never guessed", DEFINED),
    (r"in seven families, from `softmax`", DEFINED),
    (r"bfloat16 has 8, so from some length on", DEFINED),
    (r"drag n \(from 10 to 10\^18\)", DEFINED),
    (r"tells? D0 from D1", DEFINED),
    (r"Every term is at least 0", PROVED),
    (r"means that its probability P is 1 - delta or more", DEFINED),
    (r"fires on D1 with probability 1/4 or more", PROVED),
    (r"Usual values: a0 in", DEFINED),
    (r"For each of the 8 triples", PROVED),
    (r"linear has 0\.5034 at n = 1000 and is near chance beyond", CLAIM),
    (r"Every n up to 2048 was computed", DEFINED),
    (r"P may not cross 1/2 at all", PROVED),
    (r"it increases up to \$n = \(1-s\)", PROVED),
    (r"the least firing count in every row, for every sign triple", DEFINED),
    (r"for each of the at most 4,096 sign vectors", DEFINED),
    (r"is the verdict for every n from 10\^6 on", DEFINED),
    (r"All singular values of a permutation matrix are 1", PROVED),
    (r"after one gradient step of rate eta from weights 0", DEFINED),
    (r"Weights that are not negative and add up to 1", DEFINED),
    (r"Softmax recalls from 2w pairs", CLAIM),
    (r"for k up to 256 and n up to 10\^18", CLAIM),
    (r"noise of standard deviation up to 0\.01", CLAIM),
    (r"P is 0\.97 or more for softmax and 0\.03 or less for linear", CLAIM),
    (r"The best rule compares the mean", PROVED),
    (r"the accuracy of the best reader is an integral over R²", ELSEWHERE),
    (r"the ceiling of this class is its expected share", ELSEWHERE),
    (r"Its expected squared error is least at", PROVED),
    (r"which tends to 1, that of no answer", PROVED),
    (r"With a gap of 8 between the largest logit", DEFINED),
    (r"A temperature that falls like 1/log n", DEFINED),
    (r"by the proof of 3\.4 from", PROVED),
    (r"No reader of them tells q from 2q", PROVED),
    (r"With tau = 1/2 it therefore reads that token", PROVED),
    (r"\(`0.1` is 1/10\)", DEFINED),
    (r"the steps cover every n from the first one on", DEFINED),
)


@pytest.mark.parametrize(("page", "pattern", "compute"), COMPUTED, ids=[compute.__name__ for *_, compute in COMPUTED])
def test_a_stated_extreme_is_the_computed_one(page: Path, pattern: str, compute: Callable[[], Sequence[str]]) -> None:
    stated = re.search(pattern, prose(page))
    assert stated, f"{page.name} has no sentence {pattern!r}: update this table with the page"
    assert stated.groups() == tuple(compute()), stated[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_extreme_is_stated_without_being_computed(page: Path) -> None:
    known = [re.compile(pattern) for _, pattern, _ in COMPUTED] + [re.compile(p) for p, _ in OTHERWISE]
    unknown = [
        sentence
        for sentence in sentences(page)
        if states_an_extreme(sentence) and not any(pattern.search(sentence) for pattern in known)
    ]
    assert not unknown, f"{page.name} states extremes that no test computes:\n" + "\n".join(unknown)


def test_the_tables_have_no_patterns_that_match_nothing() -> None:
    text = "\n".join(map(prose, PAGES))
    assert not [pattern for pattern, _ in OTHERWISE if not re.search(pattern, text)]


def test_a_new_extreme_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Linear succeeds up to n = 240.\nIt is blind\nfrom 435 on, see `n from 3` and $x \\le 3$.\n")
    assert [each for each in sentences(page) if states_an_extreme(each)] == [
        "Linear succeeds up to n = 240.",
        "It is blind from 435 on, see `n from 3` and $x \\le 3$.",
    ]
    page.write_text("From `n=1` up to $n = 7$ as in section 3.4 of arXiv 2310.11685, D1 is best.\n")
    assert not [each for each in sentences(page) if states_an_extreme(each)]
