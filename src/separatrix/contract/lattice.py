"""The lattice of special cases: which mechanism, at which parameters, is another one.

Every edge is a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

import torch
from torch import Tensor

from separatrix.contract.inputs import LENGTH, require_equal, tokens
from separatrix.mechanisms import mechanism_named

ALL = LENGTH
"""A size that covers every token the edges are tried on."""

BOUND = 1e-11
"""For edges that are equalities; edges that are limits say their own."""


Inputs = Literal["all", "positive", "small", "unit keys", "first half"]


@dataclass(frozen=True)
class Edge:
    """`special`, a mechanism at chosen parameters, gives what `general` gives."""

    special: str
    general: str
    note: str
    causal: tuple[bool, ...] = (False, True)
    """The values of `causal` for which it holds."""
    inputs: Inputs = "all"
    """The tokens for which it holds."""
    over_keys: bool = False
    """Whether `general` is to be divided by the number of keys that a query sees."""
    times: float = 1.0
    """What `special` is to be multiplied by."""
    bound: float = BOUND


PLAIN = "causal-linear"
STIFF = "unit_keys=no,ridge=1000000000"
BOTH, PAST, WHOLE = (False, True), (True,), (False,)

EDGES: tuple[Edge, ...] = (
    Edge("power:beta=1", "linear", "the first power is the logit itself"),
    Edge("taylor:order=40", "softmax", "a long Taylor sum is exp", inputs="positive"),
    Edge("softmax:temperature=1/1000000", "hardmax", "temperature 0 keeps the largest logit alone"),
    Edge("logn-softmax:scale=0", "softmax:temperature=1000000", "no logits, no preference", bound=1e-4),
    Edge("relu", "identity-features:normalised=no", "positive logits stay", BOTH, "positive", over_keys=True),
    Edge("identity-features", "linear", "the features are the tokens"),
    Edge("relu-features", "linear", "positive tokens stay as they are", inputs="positive"),
    Edge("based", "taylor:order=2", "the features multiply out to 1 + z + z^2/2"),
    Edge("favor:features=16384", "softmax", "random features average to exp", WHOLE, "small", bound=0.02),
    Edge("rff:features=16384", "softmax", "random waves average to exp", WHOLE, "small", bound=0.02),
    Edge("topk:k=1", "hardmax", "one key is kept"),
    Edge(f"topk:k={ALL}", "softmax", "every key is kept"),
    Edge("entmax:alpha=2", "sparsemax", "entmax is sparsemax at 2"),
    Edge("entmax:alpha=1.000001", "softmax", "entmax tends to softmax at 1", bound=1e-4),
    Edge(f"window:size={ALL}", "softmax", "the window covers everything"),
    Edge("window-global:size=3,globals=0", "window:size=3", "no token is global"),
    Edge(f"window-global:size=1,globals={ALL}", "softmax", "every token is global"),
    Edge("strided:stride=1", "softmax", "every key is a stride away"),
    Edge(f"strided:stride={ALL}", "softmax", "the first stride covers everything"),
    Edge(f"block-random:block={ALL}", "softmax", "one block holds everything"),
    Edge(f"nystrom:landmarks={ALL}", "softmax", "every token is a landmark: S S+ S = S", WHOLE),
    Edge(PLAIN, "identity-features:normalised=no", "the running sum of k v^T", PAST),
    Edge("causal-linear:normalised=yes", "linear", "the running sums are those of linear", PAST),
    Edge("retention:decay=1", PLAIN, "nothing decays", PAST),
    Edge("gla:gate=1", PLAIN, "the gates are open", PAST),
    Edge("gla:gate=9/10", "retention:decay=9/10", "a constant gate for every channel is a decay", PAST),
    Edge("ssd:gate=1", PLAIN, "the gate is open", PAST),
    Edge("ssd:gate=9/10", "retention:decay=9/10", "a constant gate is a decay", PAST),
    Edge("gated-delta:gate=1", "delta", "the gate is open", PAST),
    Edge("delta:unit_keys=no", "delta", "keys of length 1 are not scaled", PAST, "unit keys"),
    Edge("kda:gate=1", "delta", "the gates are open", PAST),
    Edge("kda:gate=9/10", "gated-delta:gate=9/10", "one gate for every channel", PAST),
    Edge("deltaproduct:factors=1", "delta", "one write per token", PAST),
    Edge("deltaproduct:factors=1,beta=2", "delta:beta=2", "one reflection per token", PAST),
    Edge("rwkv7:gate=1,rate=1/2", "delta:beta=1/2", "the gates are open", PAST, "unit keys"),
    Edge(
        "rwkv7:gate=9/10,rate=9/20,replacement=10/11",
        "gated-delta:gate=9/10,beta=1/2",
        "one gate, one rate, and half of each key written",
        PAST,
        "unit keys",
    ),
    Edge("rwkv7:gate=9/10,rate=0,replacement=0", "gla:gate=9/10", "nothing is taken back", PAST),
    Edge(f"mesanet:gate=1,{STIFF}", PLAIN, "a stiff fit adds up", PAST, times=1e9, bound=1e-6),
    Edge(f"mesanet:gate=9/10,{STIFF}", "ssd:gate=9/10", "a stiff fit adds up", PAST, times=1e9, bound=1e-6),
    Edge("log-linear:share=1", "ssd", "near and far weigh the same", PAST),
    Edge("log-linear:gate=1,share=1", PLAIN, "nothing decays, near and far weigh the same", PAST),
    Edge(
        "multiscale-retention:decay=9/10,normalised=no",
        "retention:decay=9/10",
        "one decay, no normalisation",
        PAST,
    ),
    Edge("fox:gate=1", "softmax", "nothing is forgotten", PAST),
    Edge("path:beta=0", "softmax", "no token changes a key", PAST),
    Edge("alibi:inner=identity-features", "alibi:inner=linear", "the features are the tokens", PAST),
    Edge("alibi:inner=entmax:alpha=2", "alibi:inner=sparsemax", "entmax is sparsemax at 2", PAST),
    Edge(f"alibi:inner=window:size={ALL}", "alibi", "the window covers everything", PAST),
    Edge(f"block-routing:block={ALL}", "softmax", "one block holds everything"),
    Edge(f"block-routing:block=2,k={ALL}", "softmax", "every block is chosen"),
    Edge("simplicial:window=3,second=one", "window:size=3", "second keys and values change nothing"),
    Edge("simplicial:second=one", "softmax", "the window covers everything, too"),
    Edge("softmax-sink:sink=none", "softmax", "there is no sink"),
    Edge("softmax-sink:sink=-1000", "softmax", "the sink gets nothing"),
    Edge("differential:lam=0", "softmax", "nothing is taken away", inputs="first half"),
    Edge(f"window-linear:size={ALL}", "softmax", "the window covers everything", PAST),
)


def check_edge(edge: Edge) -> None:
    """Broken unless both mechanisms give the same, in their fast forms and by definition."""
    special, general = mechanism_named(edge.special), mechanism_named(edge.general)
    for causal, length in product(edge.causal, (1, 6, LENGTH)):
        q, k, v = _tokens(edge.inputs, length)
        shares = _keys_seen(length, causal) if edge.over_keys else torch.ones(1, 1, dtype=q.dtype)
        what = f"{edge.special} is not {edge.general} ({length} tokens, causal={causal})"
        found = edge.times * special(q, k, v, causal=causal)
        expected = general(q, k, v, causal=causal) / shares
        require_equal(found, expected, edge.bound, f"{what}, in the fast forms")
        found = edge.times * special.definition(q, k, v, causal=causal)
        expected = general.definition(q, k, v, causal=causal) / shares
        require_equal(found, expected, edge.bound, f"{what}, by definition")


def shown() -> list[dict[str, str]]:
    """A row for every edge, to be shown as a table."""
    return [
        {
            "special": each.special + (f" times {each.times:g}" if each.times != 1 else ""),
            "general": each.general + (" over the number of keys" if each.over_keys else ""),
            "causal": {BOTH: "either", PAST: "yes", WHOLE: "no"}[each.causal],
            "inputs": each.inputs,
            "why": each.note,
        }
        for each in EDGES
    ]


def _keys_seen(length: int, causal: bool) -> Tensor:
    """How many keys each query sees, as a column."""
    places = torch.arange(1, length + 1, dtype=torch.float64)[:, None]
    return places if causal else torch.full_like(places, length)


def _tokens(inputs: Inputs, length: int) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = tokens(length, signed=inputs != "positive")
    if inputs == "small":
        return q / 4, k / 4, v
    if inputs == "first half":
        half = -(-q.shape[-1] // 2)
        return q * (torch.arange(q.shape[-1]) < half), k, v
    if inputs == "unit keys":
        return q, torch.nn.functional.normalize(k, dim=-1), v
    return q, k, v
