"""A small model to be read in one sitting: embedding, blocks of attention and perhaps an MLP, head."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import nn

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Bool, Float, Tensor
from separatrix.layers.attention import Attention, check_natural
from separatrix.layers.cache import Cache
from separatrix.layers.measures import Measured
from separatrix.layers.parts import RMSNorm, keeping_size
from separatrix.mechanisms.extras import describe_value

Caches = Sequence[Cache | None]


class Block(Measured):
    """`x + attention(norm(x))`, and then, if there is an MLP, `x + mlp(norm(x))`.

    **Arguments:**

    - `mechanism`, `width`, `heads`, `options`: as `Attention` takes them.
    - `mlp`: how many times wider than a token the MLP is inside; None for a block without one.
    - `norm`: whether tokens are brought to root mean square 1 before either.

    >>> out, cache = Block("softmax", 16, 2, rope=10000)(torch.randn(3, 9, 16))
    >>> out.shape
    torch.Size([3, 9, 16])
    """

    def __init__(
        self,
        mechanism: Any,
        width: int,
        heads: int,
        *,
        mlp: int | None = 4,
        norm: bool = True,
        **options: Any,
    ) -> None:
        super().__init__()
        check_natural(width=width, **({} if mlp is None else {"mlp": mlp}))
        self.attention_norm = RMSNorm(width) if norm else nn.Identity()
        self.attention = Attention(mechanism, width, heads, **options)
        self.mlp_norm = RMSNorm(width) if norm and mlp else nn.Identity()
        self.mlp = (
            nn.Sequential(nn.Linear(width, mlp * width), nn.GELU(), nn.Linear(mlp * width, width))
            if mlp
            else None
        )

    def forward(
        self,
        x: Float[Tensor, "batch tokens width"],
        present: Bool[Tensor, "batch tokens"] | None = None,
        cache: Cache | None = None,
        last: int | None = None,
    ) -> tuple[Float[Tensor, "batch answered width"], Cache | None]:
        """The tokens after the block, or the `last` ones alone, and the cache of its attention."""
        heard, cache = self.attention(self.attention_norm(x), present, cache, last)
        x = x[:, x.shape[1] - heard.shape[1] :] + heard
        return (x if self.mlp is None else x + self.mlp(self.mlp_norm(x))), cache

    def state_bytes(self, tokens: int) -> int:
        """The bytes that its attention carries after so many tokens."""
        return self.attention.state_bytes(tokens)


class Model(Measured):
    """Tokens to numbers: an embedding (or a linear map of continuous inputs), blocks, a norm, a linear head.

    For one seed all weights but those of learned extras are equal whatever the mechanism. A mechanism that
    is a module is copied for each block, so that each has weights of its own. Places are known by `rope`,
    `conv` or the mechanism alone: there is no embedding of them.

    **Arguments:**

    - `mechanism`, `width`, `heads`, `options`: as `Block` takes them, and `Attention`.
    - `depth`: how many blocks there are.
    - `outputs`: how many numbers the head gives for each token.
    - `vocabulary`: how many symbols there are, if inputs are symbols (batch, tokens).
    - `features`: how wide inputs are, if they are numbers (batch, tokens, features).

    >>> model = Model("gla", 32, 4, depth=2, outputs=10, vocabulary=10)
    >>> scores, cache = model(torch.randint(10, (3, 9)))
    >>> scores.shape
    torch.Size([3, 9, 10])
    """

    def __init__(
        self,
        mechanism: Any,
        width: int,
        heads: int,
        *,
        depth: int,
        outputs: int,
        vocabulary: int | None = None,
        features: int | None = None,
        norm: bool = True,
        **options: Any,
    ) -> None:
        super().__init__()
        check_natural(width=width, depth=depth, outputs=outputs)
        if (vocabulary is None) == (features is None):
            raise UsageError("give either vocabulary, for symbols, or features, for numbers as inputs")
        if vocabulary is not None:
            check_natural(vocabulary=vocabulary)
            self.inputs: nn.Embedding | nn.Linear = nn.Embedding(vocabulary, width)
        else:
            check_natural(features=features)
            self.inputs = keeping_size(nn.Linear(features or 0, width))
        chosen = [mechanism if isinstance(mechanism, str) else deepcopy(mechanism) for _ in range(depth)]
        self.blocks = nn.ModuleList(Block(each, width, heads, norm=norm, **options) for each in chosen)
        self.norm = RMSNorm(width) if norm else nn.Identity()
        self.head = nn.Linear(width, outputs)

    def forward(
        self,
        x: Tensor,
        present: Bool[Tensor, "batch tokens"] | None = None,
        cache: Caches | None = None,
        last: int | None = None,
    ) -> tuple[Float[Tensor, "batch answered outputs"], Caches]:
        """What the head says at each token, and the caches of the blocks, with which it goes on.

        Where only so many of the `last` tokens are asked, the last block and the head leave out the others.
        """
        self._check_input(x, cache)
        x, after = self.inputs(x), list[Cache | None]()
        for place, block in enumerate(self.blocks, 1):
            before = None if cache is None else cache[place - 1]
            x, found = block(x, present, before, last if place == len(self.blocks) else None)
            after.append(found)
        return self.head(self.norm(x)), after

    def _check_input(self, x: Any, cache: Any) -> None:
        if isinstance(self.inputs, nn.Embedding):
            whole = isinstance(x, torch.Tensor) and x.ndim == 2 and x.dtype in (torch.int64, torch.int32)
            if not whole:
                raise UsageError(
                    f"x must be symbols, int64 of shape (batch, tokens), not {describe_value(x)}"
                )
            most = self.inputs.num_embeddings
            if x.numel() and not bool(((x >= 0) & (x < most)).all()):
                raise UsageError(f"x has symbols outside 0 to {most - 1}; vocabulary={most}")
        elif not isinstance(x, torch.Tensor) or x.ndim != 3 or x.shape[-1] != self.inputs.in_features:
            wanted = f"(batch, tokens, {self.inputs.in_features})"
            raise UsageError(f"x must have shape {wanted}, not {describe_value(x)}")
        if cache is not None and (not isinstance(cache, Sequence) or len(cache) != len(self.blocks)):
            raise UsageError(
                f"cache must be what this model returned, one for each of {len(self.blocks)} blocks"
            )

    def state_bytes(self, tokens: int) -> int:
        """The bytes that all blocks together carry after so many tokens."""
        blocks = (block for block in self.blocks if isinstance(block, Block))
        return sum(block.state_bytes(tokens) for block in blocks)
