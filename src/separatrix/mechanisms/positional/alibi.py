"""ALiBi, for any kernel: weights fall with the distance."""

from __future__ import annotations

from typing import Any

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import (
    Attended,
    Counts,
    Keys,
    Present,
    Queries,
    ScoreMechanism,
    Values,
    divided,
    form,
    widened,
)
from separatrix.mechanisms._places import which_present
from separatrix.mechanisms.decoding import FAR, Answered, Past
from separatrix.mechanisms.extras import SLOPES
from separatrix.mechanisms.features._base import FeatureMechanism, decode_from_sums
from separatrix.mechanisms.kernels._streamed import StreamedMechanism, softmax_of
from separatrix.mechanisms.kernels.linear import Linear
from separatrix.mechanisms.kernels.softmax import Softmax
from separatrix.mechanisms.positional._around import AroundAnother, AroundParameters
from separatrix.mechanisms.positional._faded_features import FadedFeatures
from separatrix.mechanisms.positional._fading import Fade, FadingMechanism, Seen
from separatrix.mechanisms.recurrent._decay import Kept
from separatrix.mechanisms.sparse._pattern import PatternMechanism


class AlibiParameters(AroundParameters):
    """Which mechanism's weights fall."""

    owner = "alibi"


class Alibi(AroundAnother, FadingMechanism):
    """`f_ij = softmax_j(<q_i,k_j> - slope_h (i - j))` over j up to i, one slope a head (arXiv 2108.12409).

    Head h = 1, ..., heads has the slope `2^(-8h/heads)`, as the paper has it for powers of two (its program
    takes others from the next powers); `slopes` of shape (heads,), 0 or more, are given instead. It is fox
    with the constant gate `exp(-slope)`, and slopes of 0 are softmax. Absent tokens are no distance.

    For other mechanisms, `inner`, with one parameter at most as in alibi:inner=power:beta=4 [ours]: weights
    that are a function of a query's logits (sigmoid, entmax, topk and others), and softmax over a pattern of
    places (window and others), get logits less `slope_h (i - j)`; scores that are divided by their sum, those
    of linear, power, taylor and all feature maps, are multiplied by `exp(-slope_h (i - j))`, as in
    retention. For softmax the two are one. Other mechanisms are refused.

    >>> from separatrix.mechanisms import mechanism_named
    >>> zero, v = torch.zeros(1, 1, 2, 1), torch.tensor([3.0, 0.0]).reshape(1, 1, 2, 1)
    >>> slopes = torch.tensor([2.0]).log()
    >>> mechanism_named("alibi")(zero, zero, v, causal=True, slopes=slopes).flatten()
    tensor([3., 1.])
    >>> mechanism_named("alibi:inner=elu")(zero, zero, v, causal=True, slopes=slopes).flatten()
    tensor([3., 1.])
    """

    name = "alibi"
    formula = (
        "softmax(<q_i,k_j> - slope_h (i - j)) over j <= i, slope_h = 2^(-8h/heads); alike for other inner"
    )
    source = "[rec] arXiv 2108.12409; for all but softmax [ours]"
    schema = AlibiParameters
    parameters: AlibiParameters
    extras = (SLOPES,)

    def __init__(self, /, **parameters: object) -> None:
        super().__init__(**parameters)
        inner = self.inner
        if not isinstance(inner, ScoreMechanism | StreamedMechanism | PatternMechanism | FeatureMechanism):
            raise UsageError(
                "alibi fades the logits or scores of a kernel, a feature map or a pattern of places; "
                f"{inner.spelled} ({inner.family}) is none of these"
            )
        # Linear scores decode from sums, too; all tokens at once are more exact from the scores themselves.
        scores = inner.features if isinstance(inner, Linear) else inner
        self.features = FadedFeatures(scores, self) if isinstance(scores, FeatureMechanism) else None
        vars(self).update(takes_present=isinstance(inner, ScoreMechanism | StreamedMechanism))

    def default_slopes(self, k: Keys) -> Float[Tensor, " heads"]:
        """Those of the paper, in float64."""
        heads = k.shape[1]
        return 2.0 ** (-8 * torch.arange(1, heads + 1, dtype=torch.float64, device=k.device) / heads)

    def kept(self, k: Keys, present: Present | None, extras: dict[str, Any]) -> Kept:
        places = which_present(present, k).double().cumsum(-1)[:, None, :, None]
        logs = -extras["slopes"].double()[:, None, None] * places
        return Kept(logs.expand(*k.shape[:-1], 1), None, k.dtype)

    @form
    def definition(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        if self.features is None or isinstance(self.inner, Linear):
            return super().definition(q, k, v, causal=True, **more)
        return self.features.definition(q.double(), k.double(), v.double(), causal=True, **more)

    @form
    def __call__(
        self, q: Queries, k: Keys, v: Values, counts: Counts | None = None, causal: bool = False, **more: Any
    ) -> Attended:
        """A block of queries at a time; feature maps in the fast form that they have, in float64."""
        if self.features is None or isinstance(self.inner, Linear):
            return super().__call__(q, k, v, causal=True, **more)
        return self.features(q.double(), k.double(), v.double(), causal=True, **more)

    @property
    def fixed_state(self) -> bool:
        return self.features is not None and self.features.inner.sums_up

    def example_state(self, tokens: int, k: Keys, v: Values) -> tuple[Tensor, ...]:
        assert self.features is not None
        return self.features.remembered(k, v, slopes=self.default_slopes(k))

    def readable(self, tokens: int, stream: str = "keys") -> tuple[range, ...]:
        return self.inner.readable(tokens, stream)

    def decode(
        self,
        past: Past | None,
        q: Queries,
        k: Keys,
        v: Values,
        present: Present | None = None,
        *,
        skipped: int = 0,
        **extras: Any,
    ) -> tuple[Answered, Past]:
        """Feature maps decode from sums that decay, others from the keys in reach of the inner one."""
        if self.features is None or not self.fixed_state:
            return super().decode(past, q, k, v, present, skipped=skipped, **extras)
        return decode_from_sums(self, self.features, past, q, k, v, present, skipped, extras)

    def attend_kept(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        first: int,
        present: Present | None,
        read: Tensor,
        extras: dict[str, Any],
    ) -> Attended:
        """As called; but where the first tokens stay and others between are dropped, at true distances.

        Softmax does not change if all logits of a row do, so the fall to each key is one more channel of it.
        """
        first_kept, *later = self.inner.readable(FAR)
        if not later or not isinstance(self.inner, PatternMechanism):
            return super().attend_kept(q, k, v, first, present, read, extras)
        there = which_present(present, k).long()
        place, dropped = there.cumsum(-1) - 1, (read - there.sum(-1))[:, None]
        since_last = (there.sum(-1, keepdim=True) - 1 - place) + dropped * (place < len(first_kept))
        q, k = widened(q, k)
        fall = extras["slopes"].double()[:, None, None] * since_last[:, None, :, None]
        fall = fall.to(k).expand(*k.shape[:-1], 1)
        q, k = functional.pad(q, (0, 1), value=1.0), torch.cat([k, -fall], dim=-1)
        return self.inner(q, k, v, causal=True, first=first, present=present)

    def weights(
        self, q: Queries, k: Keys, fade: Fade, seen: Seen, places: range, extras: dict[str, Any]
    ) -> Float[Tensor, "batch heads queries keys"]:
        inner, logits = self.inner, q @ k.mT
        if isinstance(inner, Softmax):
            return softmax_of(logits / float(inner.parameters.temperature) + fade, seen.to(fade))
        if isinstance(inner, ScoreMechanism):
            scores = (inner.score(logits.where(seen, 1)) * fade.exp()).where(seen, 0)
            return divided(scores, scores.sum(-1, keepdim=True))
        if isinstance(inner, StreamedMechanism):
            own = {extra.name: extras[extra.name] for extra in inner.extras}
            return inner.weights(logits + fade, seen.to(fade), **own)
        assert isinstance(inner, PatternMechanism)
        i, j = (torch.arange(each.start, each.stop, device=q.device) for each in (places, range(k.shape[-2])))
        near = inner.sees(i[:, None], j[None, :], k.shape[-2], causal=True)
        return softmax_of(logits + fade, (seen & near).to(fade))
