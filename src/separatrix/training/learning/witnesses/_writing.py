"""Writing weights into a model: blocks without effect, heads given by matrices, shifted tokens.

Matrices map a token of the stream to channels of queries, keys or values.
"""

from __future__ import annotations

from typing import Any

from separatrix.core.tensors import torch
from separatrix.layers import Attention, Model
from separatrix.training.learning.witnesses._channels import Matrix
from separatrix.training.learning.witnesses._families import BILINEAR, family_of

OPEN = 10.0
"""The logit of open gates: a gate loses about exp(-OPEN) at each token."""
LONG_KEY = 30.0
"""A constant in one channel of a key, so large that scaling the key to length 1 is nearly linear."""
NEUTRAL = {
    **dict.fromkeys(("up.weight", "gate.weight", "step.weight", "strength.weight", "scales.weight"), 0.0),
    **dict.fromkeys(("bias", "strength.bias"), 0.0),
    **dict.fromkeys(("up.bias", "gate.bias"), OPEN),
    **dict.fromkeys(("log_rate", "logits"), -OPEN),
}
"""Values at which learned extras have no effect, by their names in `separatrix.mechanisms.learned`: low-rank
gates, step sizes, the strength of writes, forget gates, the weights of levels, sinks."""


def silence(model: Model) -> None:
    """Let every block add nothing to the stream: the outputs of attention and MLP are multiplied by 0.

    Norms weight all channels equally, convolutions pass the token itself, gates are open, sinks are empty,
    the strength of a write is 1/2, the head returns 0.
    """
    with torch.no_grad():
        for parameter in (*model.inputs.parameters(), *model.head.parameters()):
            parameter.zero_()
        for block in model.blocks:
            _silence_block(block)


def _silence_block(block: Any) -> None:
    attention = block.attention
    for parameter in (attention.project.weight, attention.back.weight):
        parameter.zero_()
    if attention.convolve is not None:
        attention.convolve.weight.zero_()
        attention.convolve.weight[..., -1] = 1
    if block.mlp is not None:
        for parameter in block.mlp[-1].parameters():
            parameter.zero_()
    for module in attention.learned.values():
        for name, parameter in module.named_parameters():
            if name in NEUTRAL:
                parameter.fill_(NEUTRAL[name])


def write_head(
    attention: Attention, query: Matrix, key: Matrix, value: Matrix, output: Matrix, *, head: int = 0, gain: float = 1.0
) -> None:
    """Write the maps of one head: its logits are `<query x, key y>`, without the scale of the layer.

    `query` and `key` have at most `key_width` rows and `value` at most width / heads; other rows stay 0.
    `output` is (values, width): the target in the stream of each channel of the values. `gain` is the factor
    by which a norm divides x and y, which is undone here.
    """
    heads, keys, values = attention.heads, attention.key_width, attention.width // attention.heads
    starts = (head * keys, (heads + head) * keys, 2 * heads * keys + head * values)
    query = query / attention.scale
    # Queries, keys and values get equal norms where the output does not depend on it: noise in proportion to
    # the weights, as `learning.perturb` adds, would otherwise drown the smallest of them.
    if family_of(attention.mechanism) in BILINEAR:
        ratio = (query.norm() / key.norm()).sqrt()
        query, key = query / ratio, key * ratio
    ratio = key.norm() / value.norm()
    value, output = value * ratio, output / ratio
    with torch.no_grad():
        for start, rows in zip(starts, (query, key, value), strict=True):
            attention.project.weight[start : start + len(rows)] = gain * rows
        attention.back.weight[:, head * values : head * values + len(output)] = output.T


def write_strength(attention: Any, selector: Any, strength: float = -OPEN) -> None:
    """Let a delta rule write tokens that a map (1, width) takes to 1 with strength sigmoid(strength).

    Other mechanisms have no such strength and are not changed.
    """
    if "beta" in attention.learned:
        attention.learned["beta"].strength.weight[:] = strength * selector


def shift_tokens(attention: Any, part: int, tokens: int = 1, channel: int | None = None) -> None:
    """Let queries (part 0), keys (1) or values (2), or one channel of them, come from earlier tokens."""
    start = sum(attention.channels[:part])
    rows = slice(start, start + attention.channels[part])
    if channel is not None:
        rows = slice(start + channel, start + channel + 1)
    with torch.no_grad():
        # The last tap of the depthwise convolution is the token itself, the one before it its predecessor.
        attention.convolve.weight[rows] = 0
        attention.convolve.weight[rows, 0, attention.convolve.size - 1 - tokens] = 1
