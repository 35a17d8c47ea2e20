"""torch's nn.MultiheadAttention as a callable of q, k and v."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Multihead(nn.Module):
    """nn.MultiheadAttention, whose heads are inside it: one head of tokens as wide as the module."""

    fixed_heads = 1

    def __init__(self, inner: nn.MultiheadAttention) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, q: Tensor, k: Tensor, v: Tensor, is_causal: bool = False) -> Tensor:
        """Return the output of the module, without its weights."""
        mask = None
        if is_causal:
            mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).triu(1)
        tokens = [x[:, 0] if self.inner.batch_first else x[:, 0].transpose(0, 1) for x in (q, k, v)]
        out: Tensor = self.inner(*tokens, attn_mask=mask, need_weights=False, is_causal=is_causal)[0]
        return (out if self.inner.batch_first else out.transpose(0, 1))[:, None]
