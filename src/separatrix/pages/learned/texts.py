"""Numbers of trained evidence as text, for pages and terminals."""

from __future__ import annotations

from separatrix.analysis.evidence.estimates import PairedDifference, SeedSummary
from separatrix.analysis.evidence.training_result import EqualState, MechanismEvidence

HEAD = ("mechanism", "proved", "witness", "tuned", "trained", "solved", "rate", "weights", "state, bytes")
MAX_SEEDS = 24
"""Up to this many seeds every score is shown."""


def score_text(score: float | None) -> str:
    """Return a score, or a dash where there is none."""
    return "–" if score is None else f"{score:.4f}"


def summary_text(summary: SeedSummary | None) -> str:
    """Return the median over seeds, and its 95 % interval where there are six seeds or more; a dash without any.

    >>> summary_text(SeedSummary([0.5, 0.6])), summary_text(SeedSummary([0.1, 1, 1, 1, 1, 1]))
    ('0.5500', '1.0000 [0.1000, 1.0000]')
    """
    if summary is None:
        return "–"
    interval = summary.interval
    ends = "" if interval is None else f" [{interval[0]:.4f}, {interval[1]:.4f}]"
    return f"{summary.median:.4f}{ends}"


def seeds_text(summary: SeedSummary | None) -> str:
    """Return the score of every seed from the lowest to the highest; of many seeds, the quartiles.

    >>> seeds_text(SeedSummary([0.5, 0.25]))
    '0.2500 0.5000'
    """
    if summary is None:
        return "none"
    scores = sorted(summary.scores)
    if len(scores) <= MAX_SEEDS:
        return " ".join(f"{score:.4f}" for score in scores)
    quartiles = (scores[round((len(scores) - 1) * share)] for share in (0, 0.25, 0.5, 0.75, 1))
    return f"{len(scores)} seeds, quartiles " + " ".join(f"{score:.4f}" for score in quartiles)


def evidence_row(evidence: MechanismEvidence) -> tuple[str, ...]:
    """Return the numbers of a mechanism under `HEAD`.

    *trained* is the median over seeds with its 95 % interval; *solved* has the exact interval of the share.
    """
    low, high = evidence.solved.interval
    return (
        evidence.mechanism,
        score_text(None if evidence.proved is None else evidence.proved.score),
        score_text(evidence.witness),
        score_text(evidence.tuned_witness),
        summary_text(evidence.trained),
        f"{evidence.solved.count} of {evidence.solved.of} [{low:.2f}, {high:.2f}]",
        f"{float(evidence.lr):g}",
        "–" if evidence.parameters is None else f"{evidence.parameters:,}",
        "–" if evidence.state_bytes is None else f"{evidence.state_bytes:,}",
    )


def difference_text(pair: PairedDifference) -> str:
    """Return the mean difference of two mechanisms with the p-value of the paired test."""
    test = f"p = {pair.p_value:.2g}, adjusted {pair.p_adjusted:.2g}"
    unclear = "" if pair.is_significant else ": no significant difference"
    return f"{pair.a} − {pair.b}: {pair.difference:+.4f} ({test}){unclear}"


def equal_state_head(result: EqualState) -> tuple[str, ...]:
    """Return the head of the table at equal state, with the bytes of the reference."""
    return "mechanism", "keys", "state, bytes", f"of {result.state_bytes:,}", "trained", "solved"


def equal_state_rows(result: EqualState) -> list[tuple[str, ...]]:
    """Return the key width of each mechanism, its state beside the reference's, and its scores."""
    rows = list[tuple[str, ...]]()
    for item in result.mechanisms:
        evidence, solved = item.evidence, item.evidence.solved
        state = "–" if evidence.state_bytes is None else f"{evidence.state_bytes:,}"
        ratio = "–" if item.state_ratio is None else f"{item.state_ratio:.2f} x"
        scores = summary_text(evidence.trained), f"{solved.count} of {solved.of}"
        rows.append((evidence.mechanism, f"{item.key_width:,}", state, ratio, *scores))
    return rows
