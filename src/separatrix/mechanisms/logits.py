"""Measure the factor by which a callable's logits differ from the inner products <q, k>.

Mechanisms here take logits as plain inner products. A callable may scale them, as torch's attention does by
1/sqrt(width), which makes it blind where the same attention without the scale is not.

The scale is read from the ratio of two keys' weights: a gate, a factor, a normaliser or a linear map after
the attention multiplies both weights alike and cancels. With weights proportional to exp(s <q, k> + bias) the
logarithm of the ratio is linear in the query, and its gradient changes by s times the change of a key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import isclose

from separatrix.core.documents import Document, Hidden, shown
from separatrix.core.tensors import Tensor, functional, torch
from separatrix.mechanisms import observed
from separatrix.mechanisms._positions import Causality
from separatrix.mechanisms.custom import CustomMechanism
from separatrix.mechanisms.how_called import SQRT, WIDTH_FACTORS

WIDTHS = (16, 64)
"""Widths at which logits are measured where any will do."""
TOKEN_COUNTS = (2, 6)
"""Numbers of tokens at which logits are measured: a factor of log n differs between them."""
KEY_COUNT = 4
"""Values of the first key that are compared."""
QUERIES_PER_COORDINATE = 3
LOGIT_SPREAD = 1.5
"""Standard deviation of <q, k>: large enough that kernels other than exp do not look like it."""
TOLERANCE = 1e-4
"""Relative; loose enough for a callable that computes in float32."""
CONSTANT, OTHER = "constant", "other"
"""Laws of a factor beside those in WIDTH_FACTORS: the same at every width, or none that is known."""

View = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class LogitScale(Document):
    """The factor by which logits are more or less than <q, k>."""

    factor: float
    """The factor at `width`."""
    width: int
    law: Hidden[str]
    """How the factor depends on the width: "sqrt" and "width" divide by it, else CONSTANT or OTHER."""
    remainder: Hidden[float | None] = 1.0
    """The factor that is left once `undone_by` is applied; None if it depends on the number of tokens."""

    @shown
    def by_width(self) -> bool:
        """Whether the factor depends on the width."""
        return self.law != CONSTANT

    @shown
    def undone_by(self) -> str | None:
        """The value of --scale that undoes it; None if none does at every width."""
        if self.law == OTHER:
            return None
        return self.law if self.law in WIDTH_FACTORS else f"{1 / self.factor:.6g}"

    @property
    def what(self) -> str:
        """The effect on logits, without a full stop."""
        at_width = f"at width {self.width} they are {self.factor:.4g} <q, k>"
        if self.law in WIDTH_FACTORS:
            division = f"It divides its logits by {self.divisor}"
            if self.remainder is None:
                return f"{division}, beside a factor that depends on the number of tokens"
            return f"{division}: {at_width}"
        if self.law == OTHER:
            return f"It scales its logits by a factor that depends on the width: {at_width}"
        return f"At width {self.width} its logits are {self.factor:.4g} <q, k>"

    @property
    def divisor(self) -> str:
        """The divisor as a formula."""
        return "sqrt(width)" if self.law == SQRT else self.law

    @property
    def remedy(self) -> str:
        """The effect of `undone_by`, for the end of a sentence that begins with it."""
        if self.remainder is None:
            return "undoes the division"
        if self.law in WIDTH_FACTORS and not isclose(self.remainder, 1, rel_tol=TOLERANCE):
            return f"leaves {self.remainder:.4g} <q, k>"
        return "undoes it"

    @property
    def words(self) -> str:
        """Two sentences for the first line of a card."""
        undo = "" if self.undone_by is None else f"; --scale {self.undone_by} {self.remedy}"
        return f"{self.what}. What follows is with that{undo}."


@dataclass(frozen=True)
class LogitMeasurement:
    """The scale of a callable's logits, as far as it could be measured."""

    scale: LogitScale | None
    """None if logits are <q, k>, if a scale would change nothing, or if it is not known."""
    known: bool = True


def measure_logit_scale(mechanism: CustomMechanism) -> LogitMeasurement:
    """Measure the scale of the logits; one that the user gave, `mine:attend:scale=sqrt`, is taken as right.

    >>> from separatrix.mechanisms.custom import wrap
    >>> halved = wrap(lambda q, k, v: torch.sigmoid(q[..., :1]) * ((q @ k.mT / 2).softmax(-1) @ v))
    >>> measure_logit_scale(halved).scale.undone_by
    '2'
    """
    only_width = mechanism.fixed_width
    if factors := _exponential_factors(mechanism, WIDTHS if only_width is None else (only_width,)):
        return LogitMeasurement(_scale_of(factors))
    law = _width_law(mechanism) if only_width is None else None
    if law in WIDTH_FACTORS:
        width = WIDTHS[-1]
        return LogitMeasurement(LogitScale(1 / WIDTH_FACTORS[law](width), width, law))
    has_scale = mechanism.parameters.scale is not None
    return LogitMeasurement(None, known=has_scale or law == CONSTANT or _ignores_scale(mechanism))


def _exponential_factors(mechanism: CustomMechanism, widths: tuple[int, ...]) -> dict[tuple[int, int], float]:
    """Return the factors by width and number of tokens; none if keys are not weighed by exp.

    The smallest case comes first and decides whether others are tried, which cost some mechanisms a minute.
    """
    factors: dict[tuple[int, int], float] = {}
    for width in widths:
        for tokens in TOKEN_COUNTS:
            factor = exponential_factor(mechanism, width, tokens)
            if factor is not None:
                factors[width, tokens] = factor
            elif not factors:
                return {}
    return factors


def _scale_of(factors: dict[tuple[int, int], float]) -> LogitScale | None:
    """Return the scale with these factors by width and number of tokens; None if they are 1."""
    by_tokens: dict[int, dict[int, float]] = {}
    for (width, tokens), factor in factors.items():
        by_tokens.setdefault(tokens, {})[width] = factor
    tokens, by_width = max(by_tokens.items(), key=lambda item: (len(item[1]), -item[0]))
    comparable = [slopes for slopes in by_tokens.values() if slopes.keys() == by_width.keys()]
    grows = not all(_is_close(slopes[width], by_width[width]) for slopes in comparable for width in by_width)
    width, factor = max(by_width.items())
    laws = {CONSTANT: lambda _: 1.0, **WIDTH_FACTORS}
    remainders = {law: factor * divisor(width) for law, divisor in laws.items()}
    if len(by_width) > 1:
        fits = (
            law
            for law, divisor in laws.items()
            if all(_is_close(value * divisor(size), remainders[law]) for size, value in by_width.items())
        )
        law = next(fits, OTHER)
    else:  # at one width alone a factor such as 1/8 at width 64 is taken for a division
        divisions = (law for law in WIDTH_FACTORS if width > 1 and _is_close(remainders[law], 1.0))
        law = next(divisions, CONSTANT)
    if law == CONSTANT:
        return None if grows or _is_close(factor, 1.0) else LogitScale(factor, width, law)
    return LogitScale(factor, width, law, None if grows else remainders.get(law))


def exponential_factor(mechanism: CustomMechanism, width: int, tokens: int) -> float | None:
    """Return the s with which keys are weighed by exp(s <q, k>), up to a rotation of keys, or None.

    A bias that does not depend on the query, as that of ALiBi or of a forget gate, changes nothing.
    """
    # A generator of its own: the result must not depend on earlier draws, nor change later ones.
    generator = torch.Generator().manual_seed(11)
    queries = QUERIES_PER_COORDINATE * width + 2

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, width, generator=generator, dtype=torch.float64)

    q, later_keys = draw(queries), draw(tokens - 1) * LOGIT_SPREAD / width**0.5
    first = draw(KEY_COUNT) * LOGIT_SPREAD / width**0.5
    keys = torch.cat([first[:, None], later_keys.expand(KEY_COUNT, -1, -1)], dim=1)
    k = keys[:, None].expand(-1, queries, -1, -1).reshape(-1, 1, tokens, width)
    q_all = q[None, :, None].expand(KEY_COUNT, -1, tokens, -1).reshape(-1, 1, tokens, width)
    design = torch.cat([q, torch.ones(queries, 1, dtype=q.dtype)], dim=1)
    for weights in _weights(mechanism, q_all, k, (0, tokens - 1)):
        # A factor common to all weights of a query, as a normaliser or a gate, cancels.
        ratio = (weights[:, 0] / weights[:, -1]).reshape(KEY_COUNT, queries)
        # Weights of exp are positive: a sparse or signed kernel shows here.
        if not bool(((ratio > 0) & ratio.isfinite()).all()):
            continue
        logs = ratio.log().mT
        solution = torch.linalg.lstsq(design, logs).solution
        spread = (logs - logs.mean(0)).abs().max()
        if not bool((design @ solution - logs).abs().max() <= TOLERANCE * spread):
            continue
        # Distances between keys, since a rotation of all keys changes the gradients but not these.
        gradient_distances, key_distances = (torch.pdist(x) for x in (solution[:-1].mT.contiguous(), first))
        factors = gradient_distances / key_distances
        if bool((factors.max() - factors.min()) <= TOLERANCE * factors.max()) and factors.min() > 0:
            return factors.mean().item()
    return None


def _weights(mechanism: CustomMechanism, q: Tensor, k: Tensor, places: Sequence[int]) -> Iterator[Tensor]:
    """Yield the weights of the keys at `places` for the last query, up to a factor for each query.

    First, the effect of a value of 1 at one key among values of 0: right for mechanisms linear in values.
    Then, the features of one result, each from another key: right for a norm or a gate of the whole result.
    """
    batch, tokens = k.shape[0], k.shape[-2]
    units = torch.eye(tokens, dtype=k.dtype)[:, list(places)]

    def attend(v: Tensor) -> Tensor:
        return _attend_usual(mechanism, q, k, v.expand(batch, 1, -1, -1))[:, 0, -1]

    try:
        baseline = attend(torch.zeros(tokens, 1, dtype=k.dtype))
        yield torch.cat([attend(unit[:, None]) - baseline for unit in units.mT], dim=-1)
        yield attend(units)
    except Exception:  # a user's code may raise anything; then nothing is measured
        return


def _width_law(mechanism: CustomMechanism) -> str | None:
    """Return how the scale depends on the width, for kernels other than exp; None if it does not show.

    Coordinates of zeros beside those of queries and keys leave <q, k> as it is. If they change the result,
    but not with queries multiplied by the square root of the ratio of widths, logits are divided by it.
    """
    q, k, v = observed.tokens(observed.Sizes(WIDTHS[0], None, mechanism.fixed_heads))
    views: tuple[View, ...] = (partial(_attend_usual, mechanism, v=v), partial(_profile, mechanism))
    for view in views:
        for wider in (_zeros_after, _zeros_after_halves):
            try:
                reference = view(q, k)
                if view is not views[0] and observed.is_close(view(2 * q, k), reference):
                    continue  # the ratios of weights do not depend on any scale, and so do not show it
                wide_q, wide_k = wider(q), wider(k)
                laws = {CONSTANT: 1.0}
                laws |= {law: of(WIDTHS[1]) / of(WIDTHS[0]) for law, of in WIDTH_FACTORS.items()}
                for law, growth in laws.items():
                    if observed.is_close(view(growth * wide_q, wide_k), reference):
                        return law
            except Exception:
                continue
    return None


def _zeros_after(x: Tensor) -> Tensor:
    return functional.pad(x, (0, WIDTHS[1] - WIDTHS[0]))


def _zeros_after_halves(x: Tensor) -> Tensor:
    """Append zeros to each half of the coordinates, for mechanisms that use the halves differently."""
    zeros = (WIDTHS[1] - WIDTHS[0]) // 2
    return torch.cat([functional.pad(part, (0, zeros)) for part in x.chunk(2, -1)], -1)


def _profile(mechanism: CustomMechanism, q: Tensor, k: Tensor) -> Tensor:
    """Return the weights of the keys for the last query over their sum, in which a gate cancels."""
    weights = next(_weights(mechanism, q[:, :1], k[:, :1], range(k.shape[-2])))
    return weights / weights.sum(-1, keepdim=True)


def _ignores_scale(mechanism: CustomMechanism) -> bool:
    """Return whether queries of another length give the same result, as if they are scaled to length 1."""
    q, k, v = observed.tokens(mechanism.attend_any_size.sizes)
    try:
        return observed.is_close(_attend_usual(mechanism, 2 * q, k, v), _attend_usual(mechanism, q, k, v))
    except Exception:
        return False


def _attend_usual(mechanism: CustomMechanism, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    with torch.no_grad():
        return mechanism.attend_any_size(q, k, v, causal=mechanism.causality is Causality.ALWAYS)


def _is_close(x: float, y: float) -> bool:
    return isclose(x, y, rel_tol=TOLERANCE)
