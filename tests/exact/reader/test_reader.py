"""The reader: four layers, each to be looked at, against the formula written out."""

from __future__ import annotations

import pytest
import torch

from cases import spike
from separatrix.constructions import construction_named
from separatrix.core.parameters import UsageError
from separatrix.exact.reader import FourLayerNetwork, fires
from separatrix.mechanisms import Linear, Softmax, mechanism_named


@pytest.mark.parametrize("spelling", ["softmax", "linear", "power:beta=3"])
@pytest.mark.parametrize("form", ["ones", "identity"])
def test_the_network_is_its_formula(spelling: str, form: str) -> None:
    point = spike(n=15, d=7, m=4, form=form, a1="2")
    network = FourLayerNetwork.draw(mechanism_named(spelling), point, seed=5)
    tokens = point.dense(1, 6, torch.float64)
    total = 0.0
    for row in network.layers(tokens).attended:
        inner = sum(max(float(row @ y) - point.threshold, 0.0) for y in network.signs)
        total += max(inner, 0.0)
    assert network(tokens).item() == pytest.approx(max(total, 0.0))


def test_layers_follow_from_one_another() -> None:
    point = spike(n=15, d=7, m=4, a1="2")
    network = FourLayerNetwork.draw(Softmax(), point, seed=1)
    tokens = point.dense(1, 0, torch.float64)
    layers = network.layers(tokens)
    torch.testing.assert_close(layers.attention.sum(-1), torch.ones(15, dtype=torch.float64))
    assert tokens.values is not None
    torch.testing.assert_close(layers.attended, layers.attention @ tokens.values)
    assert torch.equal(layers.has_fired, layers.preactivations > point.threshold)
    assert bool(layers.output > 0) == bool(layers.has_fired.any())


def test_one_network_distinguishes() -> None:
    """One and the same signs: softmax is silent on D0 and fires on D1; linear is silent on both."""
    point = spike()
    softmax, linear = (FourLayerNetwork.draw(kind, point, seed=3) for kind in (Softmax(), Linear()))
    assert (fires(softmax, point, 0, 17), fires(softmax, point, 1, 17)) == (False, True)
    assert (fires(linear, point, 0, 17), fires(linear, point, 1, 17)) == (False, False)


def test_plain_reads_the_weights_themselves() -> None:
    point = construction_named("plain").read({"n": 50, "m": 6})
    network = FourLayerNetwork.draw(Softmax(), point, seed=2)
    layers = network.layers(point.dense(1, 9, torch.float64))
    assert layers.attended.argmax() == 9
    torch.testing.assert_close(layers.preactivations, layers.attention @ network.signs.T)


def test_groups_are_refused() -> None:
    network = FourLayerNetwork.draw(Softmax(), spike(), seed=0)
    with pytest.raises(UsageError, match="dense tokens"):
        network(spike().token_groups(1, torch.float64))
    for place in (-1, 1000):
        with pytest.raises(UsageError, match="the position of a token"):
            fires(network, spike(), 1, place)


def test_it_is_a_module_with_signs_in_its_state() -> None:
    network = FourLayerNetwork.draw(Softmax(), spike(), seed=0)
    assert set(network.state_dict()) == {"signs"}
    assert set(network.signs.unique().tolist()) == {-1.0, 1.0}
