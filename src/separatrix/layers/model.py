"""A small model to be read in one sitting: embedding, blocks of attention and optional MLP, head."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import nn

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Float, Tensor
from separatrix.layers.attention import Attention, check_natural
from separatrix.layers.cache import Cache
from separatrix.layers.parts import Measured, RMSNorm, TokenMask, Tokens, init_to_keep_size
from separatrix.mechanisms.extras import describe_value

Caches = Sequence[Cache | None]


class Block(Measured):
    """`x + attention(norm(x))`, and then, if there is an MLP, `x + mlp(norm(x))`.

    **Arguments:**

    - `mechanism`, `width`, `heads`, `options`: as for `Attention`.
    - `mlp`: the width of the hidden layer of the MLP, as a multiple of `width`; None for no MLP.
    - `norm`: whether the inputs of both are normalised to a root mean square of 1.

    >>> out, cache = Block("softmax", 16, 2, rope=10000)(torch.randn(3, 9, 16))
    >>> out.shape
    torch.Size([3, 9, 16])
    """

    def __init__(
        self, mechanism: Any, width: int, heads: int, *, mlp: int | None = 4, norm: bool = True, **options: Any
    ) -> None:
        super().__init__()
        check_natural(width=width, **({} if mlp is None else {"mlp": mlp}))
        self.attention_norm = RMSNorm(width) if norm else nn.Identity()
        self.attention = Attention(mechanism, width, heads, **options)
        self.mlp_norm = RMSNorm(width) if norm and mlp else nn.Identity()
        self.mlp = (
            nn.Sequential(nn.Linear(width, mlp * width), nn.GELU(), nn.Linear(mlp * width, width)) if mlp else None
        )

    def forward(
        self, x: Tokens, present: TokenMask | None = None, cache: Cache | None = None, last: int | None = None
    ) -> tuple[Float[Tensor, "batch answered channels"], Cache | None]:
        """Return the tokens after the block, or only the `last` ones, and the cache of its attention."""
        update, cache = self.attention(self.attention_norm(x), present, cache, last)
        x = x[:, x.shape[1] - update.shape[1] :] + update
        return (x if self.mlp is None else x + self.mlp(self.mlp_norm(x))), cache

    def state_bytes(self, tokens: int) -> int:
        """Return the bytes of the state of its attention after this many tokens."""
        return self.attention.state_bytes(tokens)


class Model(Measured):
    """Tokens to numbers: an embedding (or a linear map of continuous inputs), blocks, a norm, a linear head.

    For one seed, all weights but those of learned extras are equal for every mechanism. A mechanism that is a
    module is copied for each block, so that blocks do not share weights. There is no embedding of positions:
    only `rope`, `conv` or the mechanism depend on them.

    **Arguments:**

    - `mechanism`, `width`, `heads`, `options`: as for `Block` and `Attention`.
    - `depth`: the number of blocks.
    - `outputs`: the number of outputs of the head for each token.
    - `vocabulary`: the number of symbols, if inputs are symbols (batch, tokens).
    - `features`: the width of the inputs, if they are numbers (batch, tokens, features).

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
            self.inputs = init_to_keep_size(nn.Linear(features or 0, width))
        copies = [mechanism if isinstance(mechanism, str) else deepcopy(mechanism) for _ in range(depth)]
        self.blocks = nn.ModuleList(Block(copy, width, heads, norm=norm, **options) for copy in copies)
        self.norm = RMSNorm(width) if norm else nn.Identity()
        self.head = nn.Linear(width, outputs)

    def forward(
        self, x: Tensor, present: TokenMask | None = None, cache: Caches | None = None, last: int | None = None
    ) -> tuple[Float[Tensor, "batch answered outputs"], Caches]:
        """Return the outputs for each token, or for the `last` ones, and the caches of the blocks.

        **Arguments:**

        - `cache`: the caches that the previous call returned; None at the beginning.
        """
        self._check_input(x, cache)
        x, caches = self.inputs(x), list[Cache | None]()
        for i, block in enumerate(self.blocks):
            block_cache = None if cache is None else cache[i]
            # Earlier blocks need all tokens: later ones attend to their outputs.
            x, block_cache = block(x, present, block_cache, last if i == len(self.blocks) - 1 else None)
            caches.append(block_cache)
        return self.head(self.norm(x)), caches

    def _check_input(self, x: Any, cache: Any) -> None:
        if isinstance(self.inputs, nn.Embedding):
            is_symbols = isinstance(x, torch.Tensor) and x.ndim == 2 and x.dtype in (torch.int64, torch.int32)
            if not is_symbols:
                raise UsageError(f"x must be symbols, int64 of shape (batch, tokens), not {describe_value(x)}")
            size = self.inputs.num_embeddings
            # On a GPU, an index out of range is a device-side assertion, after which CUDA cannot be used.
            if x.numel() and not bool(((x >= 0) & (x < size)).all()):
                raise UsageError(f"x has symbols outside 0 to {size - 1}; vocabulary={size}")
        elif not isinstance(x, torch.Tensor) or x.ndim != 3 or x.shape[-1] != self.inputs.in_features:
            shape = f"(batch, tokens, {self.inputs.in_features})"
            raise UsageError(f"x must have shape {shape}, not {describe_value(x)}")
        if cache is not None and (not isinstance(cache, Sequence) or len(cache) != len(self.blocks)):
            raise UsageError(f"cache must be what this model returned, one for each of {len(self.blocks)} blocks")

    def state_bytes(self, tokens: int) -> int:
        """Return the bytes of the state of all blocks after this many tokens."""
        blocks = (block for block in self.blocks if isinstance(block, Block))
        return sum(block.state_bytes(tokens) for block in blocks)
