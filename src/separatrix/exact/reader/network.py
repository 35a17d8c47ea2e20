"""The four-layer network of the paper, with access to every layer."""

from __future__ import annotations

from dataclasses import dataclass

from separatrix.constructions import Construction, Label, Tokens
from separatrix.core.parameters import UsageError
from separatrix.core.tensors import Bool, Float, Tensor, torch
from separatrix.mechanisms import Causality, Mechanism


@dataclass(frozen=True)
class Layers:
    """The outputs of all layers for one token set."""

    attention: Float[Tensor, "rows keys"]
    """The attention weights f of each query row."""
    attended: Float[Tensor, "rows features"]
    """The attention output c of each row."""
    preactivations: Float[Tensor, "rows m"]
    """<c, y> for every row and sign vector."""
    neurons: Float[Tensor, "rows m"]
    """phi_tau of the pre-activations."""
    rows: Float[Tensor, " rows"]
    """phi of the sum over the sign vectors."""
    output: Float[Tensor, ""]
    """F: phi of the sum over the rows. The network fires if it is positive."""

    @property
    def has_fired(self) -> Bool[Tensor, "rows m"]:
        """Which neurons of the second layer fired."""
        return self.neurons > 0


class FourLayerNetwork(torch.nn.Module):
    """`F(A) = phi( sum_j0 phi( sum_j1 phi_tau( <c_j0, y_j1> ) ) )` [paper].

    The signs y are the network's random weights; attention is its first layer.

    >>> from separatrix.constructions.spike import Spike
    >>> from separatrix.mechanisms import Softmax
    >>> spike = Spike.read(dict(n=20, d=7, m=3, a0="0.01", a1="2", b="0.2", c="0.1"))
    >>> network = FourLayerNetwork(Softmax(), torch.ones(3, 7, dtype=torch.float64), spike.threshold)
    >>> fires(network, spike, 0), fires(network, spike, 1)
    (True, True)
    """

    signs: Tensor

    def __init__(self, mechanism: Mechanism, signs: Float[Tensor, "m features"], tau: float) -> None:
        super().__init__()
        self.mechanism = mechanism
        self.tau = tau
        self.register_buffer("signs", signs)

    @classmethod
    def draw(
        cls, mechanism: Mechanism, construction: Construction, seed: int, dtype: torch.dtype = torch.float64
    ) -> FourLayerNetwork:
        """Return a network with m independent uniform sign vectors."""
        return cls(mechanism, draw_signs(construction, seed, dtype), construction.threshold)

    def forward(self, tokens: Tokens) -> Float[Tensor, ""]:
        """Return F of the tokens."""
        return self.layers(tokens).output

    def layers(self, tokens: Tokens) -> Layers:
        """Return every layer. Attention weights come from attending to unit vectors, in n-by-n memory."""
        if tokens.counts is not None:
            raise UsageError("the network needs dense tokens, not groups")
        keys = tokens.keys[None, None]
        units = torch.eye(len(tokens.keys), dtype=tokens.keys.dtype)[None, None]
        causal = self.mechanism.causality is Causality.ALWAYS
        attend, queries = self.mechanism.attend_any_size, tokens.queries[None, None]
        attention = attend(queries, keys, units, causal=causal)[0, 0]
        attended = attention if tokens.values is None else attention @ tokens.values
        preactivations = attended @ self.signs.T
        neurons = (preactivations - self.tau).relu()
        rows = neurons.sum(-1).relu()
        return Layers(attention, attended, preactivations, neurons, rows, rows.sum().relu())


def draw_signs(
    construction: Construction, seed: int, dtype: torch.dtype = torch.float64
) -> Float[Tensor, "m features"]:
    """Draw m independent uniform sign vectors."""
    generator = torch.Generator().manual_seed(seed)
    bits = torch.randint(0, 2, (construction.m, construction.signs), generator=generator)
    return (2 * bits - 1).to(dtype)


def fires(network: FourLayerNetwork, construction: Construction, label: Label, spike: int = 0) -> bool:
    """Return whether the network fires on a label, with the special token at position `spike`."""
    if label not in (0, 1):
        raise UsageError(f"label={label} must be 0 or 1")
    if not 0 <= spike < construction.n:
        raise UsageError(f"spike={spike} must be the position of a token, 0 to {construction.n - 1}")
    tokens = construction.dense(label, spike, network.signs.dtype)
    return bool(network(tokens) > 0)
