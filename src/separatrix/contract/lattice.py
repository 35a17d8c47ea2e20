"""The lattice of special cases: which mechanism, at which parameters, equals another one; each is a test."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

import torch

from separatrix.contract.calls import call_definition, call_fast
from separatrix.contract.comparisons import require_close
from separatrix.contract.inputs import LENGTH, Tokens, draw_tokens
from separatrix.mechanisms import mechanism_named

ALL = LENGTH
"""A size that covers all tokens of the comparisons."""

TOLERANCE = 1e-11
"""The tolerance of special cases that are equalities; those that are limits have their own."""

Inputs = Literal["all", "positive", "small", "unit keys", "first half"]


@dataclass(frozen=True)
class SpecialCase:
    """`special`, a mechanism at certain parameters, gives the same as `general`."""

    special: str
    general: str
    note: str
    causal: tuple[bool, ...] = (False, True)
    """The values of `causal` for which it holds."""
    inputs: Inputs = "all"
    """The tokens for which it holds."""
    is_sum: bool = False
    """Whether `general` has to be divided by the number of keys that a query sees."""
    factor: float = 1.0
    """The factor by which `special` has to be multiplied."""
    tolerance: float = TOLERANCE


PLAIN = "causal-linear"
STIFF = "unit_keys=no,ridge=1000000000"
BOTH, PAST, WHOLE = (False, True), (True,), (False,)

SPECIAL_CASES: tuple[SpecialCase, ...] = (
    SpecialCase("power:beta=1", "linear", "the first power is the logit itself"),
    SpecialCase("taylor:order=40", "softmax", "a long Taylor sum is exp", inputs="positive"),
    SpecialCase("softmax:temperature=1/1000000", "hardmax", "temperature 0 keeps the largest logit alone"),
    SpecialCase("logn-softmax:scale=0", "softmax:temperature=1000000", "no logits, no preference", tolerance=1e-4),
    SpecialCase("relu", "identity-features:normalised=no", "positive logits stay", BOTH, "positive", is_sum=True),
    SpecialCase("identity-features", "linear", "the features are the tokens"),
    SpecialCase("relu-features", "linear", "positive tokens stay as they are", inputs="positive"),
    SpecialCase("based", "taylor:order=2", "the features multiply out to 1 + z + z^2/2"),
    SpecialCase("favor:features=16384", "softmax", "random features average to exp", WHOLE, "small", tolerance=0.02),
    SpecialCase("rff:features=16384", "softmax", "random waves average to exp", WHOLE, "small", tolerance=0.02),
    SpecialCase("topk:k=1", "hardmax", "one key is kept"),
    SpecialCase(f"topk:k={ALL}", "softmax", "every key is kept"),
    SpecialCase("entmax:alpha=2", "sparsemax", "entmax is sparsemax at 2"),
    SpecialCase("entmax:alpha=1.000001", "softmax", "entmax tends to softmax at 1", tolerance=1e-4),
    SpecialCase(f"window:size={ALL}", "softmax", "the window covers everything"),
    SpecialCase("window-global:size=3,globals=0", "window:size=3", "no token is global"),
    SpecialCase(f"window-global:size=1,globals={ALL}", "softmax", "every token is global"),
    SpecialCase("strided:stride=1", "softmax", "every key is a stride away"),
    SpecialCase(f"strided:stride={ALL}", "softmax", "the first stride covers everything"),
    SpecialCase(f"block-random:block={ALL}", "softmax", "one block holds everything"),
    SpecialCase(f"nystrom:landmarks={ALL}", "softmax", "every token is a landmark: S S+ S = S", WHOLE),
    SpecialCase(PLAIN, "identity-features:normalised=no", "the running sum of k v^T", PAST),
    SpecialCase("causal-linear:normalised=yes", "linear", "the running sums are those of linear", PAST),
    SpecialCase("retention:decay=1", PLAIN, "nothing decays", PAST),
    SpecialCase("gla:gate=1", PLAIN, "the gates are open", PAST),
    SpecialCase("gla:gate=9/10", "retention:decay=9/10", "a constant gate for every channel is a decay", PAST),
    SpecialCase("ssd:gate=1", PLAIN, "the gate is open", PAST),
    SpecialCase("ssd:gate=9/10", "retention:decay=9/10", "a constant gate is a decay", PAST),
    SpecialCase("gated-delta:gate=1", "delta", "the gate is open", PAST),
    SpecialCase("delta:unit_keys=no", "delta", "keys of length 1 are not scaled", PAST, "unit keys"),
    SpecialCase("kda:gate=1", "delta", "the gates are open", PAST),
    SpecialCase("kda:gate=9/10", "gated-delta:gate=9/10", "one gate for every channel", PAST),
    SpecialCase("deltaproduct:factors=1", "delta", "one write per token", PAST),
    SpecialCase("deltaproduct:factors=1,beta=2", "delta:beta=2", "one reflection per token", PAST),
    SpecialCase("rwkv7:gate=1,rate=1/2", "delta:beta=1/2", "the gates are open", PAST, "unit keys"),
    SpecialCase(
        "rwkv7:gate=9/10,rate=9/20,replacement=10/11",
        "gated-delta:gate=9/10,beta=1/2",
        "one gate, one rate, and half of each key written",
        PAST,
        "unit keys",
    ),
    SpecialCase("rwkv7:gate=9/10,rate=0,replacement=0", "gla:gate=9/10", "nothing is taken back", PAST),
    SpecialCase(f"mesanet:gate=1,{STIFF}", PLAIN, "a stiff fit adds up", PAST, factor=1e9, tolerance=1e-6),
    SpecialCase(f"mesanet:gate=9/10,{STIFF}", "ssd:gate=9/10", "a stiff fit adds up", PAST, factor=1e9, tolerance=1e-6),
    SpecialCase("log-linear:share=1", "ssd", "near and far weigh the same", PAST),
    SpecialCase("log-linear:gate=1,share=1", PLAIN, "nothing decays, near and far weigh the same", PAST),
    SpecialCase(
        "multiscale-retention:decay=9/10,normalised=no", "retention:decay=9/10", "one decay, no normalisation", PAST
    ),
    SpecialCase("fox:gate=1", "softmax", "nothing is forgotten", PAST),
    SpecialCase("path:beta=0", "softmax", "no token changes a key", PAST),
    SpecialCase("alibi:inner=identity-features", "alibi:inner=linear", "the features are the tokens", PAST),
    SpecialCase("alibi:inner=entmax:alpha=2", "alibi:inner=sparsemax", "entmax is sparsemax at 2", PAST),
    SpecialCase(f"alibi:inner=window:size={ALL}", "alibi", "the window covers everything", PAST),
    SpecialCase(f"block-routing:block={ALL}", "softmax", "one block holds everything"),
    SpecialCase(f"block-routing:block=2,k={ALL}", "softmax", "every block is chosen"),
    SpecialCase("simplicial:window=3,second=one", "window:size=3", "second keys and values change nothing"),
    SpecialCase("simplicial:second=one", "softmax", "the window covers everything, too"),
    SpecialCase("softmax-sink:sink=none", "softmax", "there is no sink"),
    SpecialCase("softmax-sink:sink=-1000", "softmax", "the sink gets nothing"),
    SpecialCase("differential:lam=0", "softmax", "nothing is taken away", inputs="first half"),
    SpecialCase(f"window-linear:size={ALL}", "softmax", "the window covers everything", PAST),
)


def check_special_case(case: SpecialCase) -> None:
    """Raise Broken unless both mechanisms give the same, in their fast forms and by definition."""
    special, general = mechanism_named(case.special), mechanism_named(case.general)
    for causal, length in product(case.causal, (1, 6, LENGTH)):
        q, k, v = _draw_inputs(case.inputs, length)
        visible = torch.ones(length, length, dtype=q.dtype)
        visible_counts = (visible.tril() if causal else visible).sum(-1, keepdim=True)
        message = f"{case.special} is not {case.general} ({length} tokens, causal={causal})"
        for form, call in (("in the fast forms", call_fast), ("by definition", call_definition)):
            actual = case.factor * call(special, q, k, v, causal=causal)
            reference = call(general, q, k, v, causal=causal) / (visible_counts if case.is_sum else 1)
            require_close(actual, reference, case.tolerance, f"{message}, {form}")


def list_special_cases() -> list[dict[str, str]]:
    """Return a row for every special case, to be shown as a table."""
    return [
        {
            "special": case.special + (f" times {case.factor:g}" if case.factor != 1 else ""),
            "general": case.general + (" over the number of keys" if case.is_sum else ""),
            "causal": {BOTH: "either", PAST: "yes", WHOLE: "no"}[case.causal],
            "inputs": case.inputs,
            "why": case.note,
        }
        for case in SPECIAL_CASES
    ]


def _draw_inputs(inputs: Inputs, length: int) -> Tokens:
    q, k, v = draw_tokens(length, is_signed=inputs != "positive")
    if inputs == "small":  # the variance of random features grows exponentially with the size of tokens
        return Tokens(q / 4, k / 4, v)
    if inputs == "first half":  # the channels of which the first softmax of differential attention is made
        first_half = torch.arange(q.shape[-1]) < -(-q.shape[-1] // 2)
        return Tokens(q * first_half, k, v)
    if inputs == "unit keys":
        return Tokens(q, torch.nn.functional.normalize(k, dim=-1), v)
    return Tokens(q, k, v)
