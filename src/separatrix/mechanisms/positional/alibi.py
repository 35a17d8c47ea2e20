"""ALiBi, for any kernel: weights fall with the distance."""

from __future__ import annotations

from typing import Any

from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Float, Tensor, functional, torch
from separatrix.mechanisms._base import ScoreMechanism
from separatrix.mechanisms._blocks import divide
from separatrix.mechanisms._methods import attention_method, upcast
from separatrix.mechanisms._positions import presence_mask
from separatrix.mechanisms._types import Attended, CallOptions, Keys, Present, Queries, Values, Visible
from separatrix.mechanisms.decoding import FAR, Answers, NewTokens, Past
from separatrix.mechanisms.extras import SLOPES
from separatrix.mechanisms.features._base import FeatureMechanism, decode_from_sums
from separatrix.mechanisms.kernels._streamed import StreamedMechanism, softmax
from separatrix.mechanisms.kernels.linear import Linear
from separatrix.mechanisms.kernels.softmax import Softmax
from separatrix.mechanisms.positional._faded_features import FadedFeatures
from separatrix.mechanisms.positional._fading import Fade, FadingMechanism
from separatrix.mechanisms.positional._wrapper import WrapperMechanism
from separatrix.mechanisms.recurrent._decay import Decays
from separatrix.mechanisms.sparse._pattern import PatternMechanism


class Alibi(WrapperMechanism, FadingMechanism):
    """`f_ij = softmax_j(<q_i,k_j> - slope_h (i - j))` over j up to i, one slope a head (arXiv 2108.12409).

    Head h = 1, ..., heads has the slope `2^(-8h/heads)`, which the paper uses for powers of two (its program
    takes others from the next powers); `slopes` of shape (heads,), 0 or more, replace these. It is fox with
    the constant gate `exp(-slope)`, and slopes of 0 are softmax. Absent tokens are no distance.

    For other mechanisms, `inner`, with one parameter at most as in alibi:inner=power:beta=4 [ours]: weights
    that are a function of a query's logits (sigmoid, entmax, topk and others), and softmax over a pattern of
    positions (window and others), get logits less `slope_h (i - j)`; scores that are divided by their sum,
    those of linear, power, taylor and all feature maps, are multiplied by `exp(-slope_h (i - j))`, as in
    retention. For softmax both are the same. Other mechanisms are refused.

    >>> from separatrix.mechanisms import mechanism_named
    >>> zero, v = torch.zeros(1, 1, 2, 1), torch.tensor([3.0, 0.0]).reshape(1, 1, 2, 1)
    >>> slopes = torch.tensor([2.0]).log()
    >>> mechanism_named("alibi")(zero, zero, v, causal=True, slopes=slopes).flatten()
    tensor([3., 1.])
    >>> mechanism_named("alibi:inner=elu")(zero, zero, v, causal=True, slopes=slopes).flatten()
    tensor([3., 1.])
    """

    name = "alibi"
    formula = "softmax(<q_i,k_j> - slope_h (i - j)) over j <= i, slope_h = 2^(-8h/heads); alike for other inner"
    source = "[rec] arXiv 2108.12409; for all but softmax [ours]"
    extras = (SLOPES,)

    def __init__(self, /, **parameters: object) -> None:
        super().__init__(**parameters)
        inner = self.inner_mechanism
        if not isinstance(inner, ScoreMechanism | StreamedMechanism | PatternMechanism | FeatureMechanism):
            raise UsageError(
                "alibi fades the logits or scores of a kernel, a feature map or a pattern of positions; "
                f"{inner.spelled} ({inner.family}) is none of these"
            )
        # Linear scores decode from sums, too; all tokens at once are more exact from the scores themselves.
        scores = inner.feature_map if isinstance(inner, Linear) else inner
        self.faded_features = FadedFeatures(scores, self) if isinstance(scores, FeatureMechanism) else None
        self._feature_form = self.faded_features if isinstance(inner, FeatureMechanism) else None
        vars(self).update(takes_present=isinstance(inner, ScoreMechanism | StreamedMechanism))

    def default_slopes(self, k: Keys) -> Float[Tensor, " heads"]:
        """Return the slopes of the paper, in float64."""
        heads = k.shape[1]
        return 2.0 ** (-8 * torch.arange(1, heads + 1, dtype=torch.float64, device=k.device) / heads)

    def decays(self, k: Keys, present: Present | None, extras: dict[str, Any]) -> Decays:
        positions = presence_mask(present, k).double().cumsum(-1)[:, None, :, None]
        logs = -extras["slopes"].double()[:, None, None] * positions
        return Decays(logs.expand(*k.shape[:-1], 1), None, k.dtype)

    @attention_method
    def definition(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        if self._feature_form is None:
            return super().definition(q, k, v, causal=True, **options.positions(), **extras)
        wide = (x.double() for x in (q, k, v))
        return self._feature_form.definition(*wide, causal=True, **options.positions(), **extras)

    @attention_method
    def __call__(self, q: Queries, k: Keys, v: Values, options: CallOptions, **extras: Any) -> Attended:
        """Compute blocks of queries; feature maps in their own fast form, in float64."""
        if self._feature_form is None:
            return super().__call__(q, k, v, causal=True, **options.positions(), **extras)
        # Falls grow with the position: added to them in float32, logarithms of features would lose digits.
        wide = (x.double() for x in (q, k, v))
        return self._feature_form(*wide, causal=True, **options.positions(), **extras)

    @property
    def fixed_state(self) -> bool:
        return self.faded_features is not None and self.faded_features.inner.fixed_state

    def example_state(self, tokens: int, k: Keys, v: Values) -> tuple[Tensor, ...]:
        assert self.faded_features is not None
        return self.faded_features.summarise(k, v, slopes=self.default_slopes(k))

    def decode(self, past: Past | None, new: NewTokens) -> tuple[Answers, Past]:
        """Decode feature maps from sums that decay, others from the keys in reach of the inner mechanism."""
        if self.faded_features is None or not self.fixed_state:
            return super().decode(past, new)
        return decode_from_sums(self, self.faded_features, past, new)

    def attend_to_cache(
        self, q: Queries, k: Keys, v: Values, options: CallOptions, lengths: Tensor, extras: dict[str, Any]
    ) -> Attended:
        """Use true distances if the first tokens are cached and later ones dropped; else just call it.

        Softmax does not change if all logits of a row do, so the fall to each key is one more channel of it.
        """
        first_part, *later_parts = self.inner_mechanism.readable(FAR)
        if not later_parts or not isinstance(self.inner_mechanism, PatternMechanism):
            return super().attend_to_cache(q, k, v, options, lengths, extras)
        counts = presence_mask(options.present, k).long()
        position, total = counts.cumsum(-1) - 1, counts.sum(-1, keepdim=True)
        # Dropped tokens stand between the first tokens and all later ones: only the former are further away.
        distance = (total - 1 - position) + (lengths[:, None] - total) * (position < len(first_part))
        q, k = upcast(q, k)
        fall = extras["slopes"].double()[:, None, None] * distance[:, None, :, None]
        fall = fall.to(k).expand(*k.shape[:-1], 1)
        q, k = functional.pad(q, (0, 1), value=1.0), torch.cat([k, -fall], dim=-1)
        return self.inner_mechanism(q, k, v, causal=True, **options.positions())

    def weights(
        self, q: Queries, k: Keys, fade: Fade, visible: Visible, positions: range, extras: dict[str, Any]
    ) -> Float[Tensor, "batch heads queries keys"]:
        inner, logits = self.inner_mechanism, q @ k.mT
        if isinstance(inner, Softmax):
            return softmax(logits / float(inner.temperature) + fade, visible.to(fade))
        if isinstance(inner, ScoreMechanism):
            # Hidden logits become 1, as in `ScoreMechanism`, so that no score or slope is infinite.
            scores = (inner.score(logits.where(visible, 1)) * fade.exp()).where(visible, 0)
            return divide(scores, scores.sum(-1, keepdim=True))
        if isinstance(inner, StreamedMechanism):
            inner_extras = {extra.name: extras[extra.name] for extra in inner.extras}
            return inner.weights(logits + fade, visible.to(fade), **inner_extras)
        assert isinstance(inner, PatternMechanism)
        i = torch.arange(positions.start, positions.stop, device=q.device)[:, None]
        j = torch.arange(k.shape[-2], device=q.device)[None, :]
        pattern = inner.sees(i, j, k.shape[-2], causal=True)
        return softmax(logits + fade, (visible & pattern).to(fade))
