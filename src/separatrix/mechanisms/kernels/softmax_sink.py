"""Softmax with a sink: one more logit below, so that a query can look at nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator

from separatrix.core.numbers import format_exact, parse_exact
from separatrix.core.parameters import Constraint, Parameters
from separatrix.core.tensors import torch
from separatrix.mechanisms.extras import SINK
from separatrix.mechanisms.kernels._streamed import Copies, Logits, StreamedMechanism, over


def _sink(value: object) -> Fraction | str:
    return "none" if value == "none" else parse_exact(value, "sink")


class SinkParameters(Parameters):
    """The logit of the sink, or none."""

    owner = "softmax-sink"
    sink: Annotated[Fraction | str, BeforeValidator(_sink)] = Fraction(0)
    constraints: ClassVar[tuple[Constraint, ...]] = (
        Constraint(
            ("sink",),
            lambda p: p.sink == "none" or abs(p.sink) <= 10**6,
            lambda p: (
                f"sink={format_exact(p.sink)} is out of range; sink must be none, or between -1e6 and 1e6"
            ),
        ),
    )


class SoftmaxSink(StreamedMechanism):
    """`f = exp(<q,k>) / (exp(sink) + sum exp(<q,k>))`: softmax with one more key, whose value is 0.

    sink=0 is the zero sink of StreamingLLM (arXiv 2309.17453), sink=none softmax. gpt-oss learns
    one logit for each head: `sink` of shape (heads,). What StreamingLLM itself does is another thing: it
    keeps the first tokens in sight beside a window, as window-global does, or has one more token learned in
    front, whose value is not 0.

    >>> from separatrix.mechanisms import mechanism_named
    >>> one = torch.ones(1, 1, 1, 1)
    >>> mechanism_named("softmax-sink")(0 * one, one, one).item()
    0.5
    """

    name = "softmax-sink"
    formula = "exp(<q,k>) / (exp(sink) + sum exp(<q,k>))"
    source = "[rec] arXiv 2309.17453; one logit per head as in gpt-oss"
    schema = SinkParameters
    parameters: SinkParameters
    extras = (SINK,)

    @property
    def normalised(self) -> bool:
        return self.parameters.sink == "none"

    def weights(self, logits: Logits, copies: Copies, **extras: Any) -> Logits:
        sink = extras["sink"].to(logits)[:, None, None]
        logits = logits.masked_fill(copies <= 0, -torch.inf)
        # The shift cancels, so derivatives of every order stay right when it is taken for a constant.
        top = logits.detach().amax(-1, keepdim=True).maximum(sink.detach())
        top = top.masked_fill(top == -torch.inf, 0)
        scores = copies * (logits - top).exp()
        return over(scores, scores.sum(-1, keepdim=True) + (sink - top).exp())
