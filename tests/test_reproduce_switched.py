"""Networks with a norm or a gate switched: what they keep, and that everything comes back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import catenary as ct
from catenary.reproduce.small import small_network, std_for
from catenary.reproduce.switched import sizes, switched

LENGTH = 12


def made(width: int = 32, layers: int = 2) -> tuple[object, ct.Windows]:
    network = small_network(width, 2, layers, std=std_for(width, 0.2), seed=3, wide=4.0)
    return network, ct.random_windows(LENGTH, 1, 5)


def test_norms_by_position_leave_a_windows_stream_as_it_is() -> None:
    network, windows = made()
    own = sizes(network, windows)
    with switched(network, own, norms="by position"):
        again = sizes(network, windows)
    assert len(own.norms) == 4
    for key, values in own.norms.items():
        assert again.norms[key] == pytest.approx(values, rel=1e-4)
    with switched(network, own, norms="one", gate="one"):
        other = sizes(network, windows)
        for layer in network.anatomy.layers:  # type: ignore[attr-defined]
            told = layer.input_layernorm(torch.ones(1, LENGTH, 32))
            assert torch.equal(told, told[:, :1].expand_as(told))
    assert np.abs(other.norms[1, "input_layernorm"] / own.norms[1, "input_layernorm"] - 1).max() > 0.01
    for index in range(2):  # the gate is open by one number, that of the gated network
        assert other.gates[index] == pytest.approx(np.full(LENGTH, np.sqrt(np.mean(own.gates[index] ** 2))), rel=1e-6)


def test_the_norms_of_one_branch_are_switched_alone() -> None:
    network, windows = made()
    layer = network.anatomy.layers[0]  # type: ignore[attr-defined]
    with switched(network, sizes(network, windows), norms="one", of=("post_attention_layernorm",)):
        assert "Divide" in type(layer.post_attention_layernorm).__name__
        assert "Divide" not in type(layer.input_layernorm).__name__


def test_the_first_norm_divides_by_the_size_of_what_is_fed() -> None:
    network, windows = made()
    own = sizes(network, windows)
    assert own.norms[0, "input_layernorm"] == pytest.approx(np.full(LENGTH, std_for(32, 0.2)), rel=0.4)


def test_switched_blocks_are_linear_in_the_stream() -> None:
    """Without attention (its output matrix 0) a linear network's Jacobian is the same whatever it is fed."""
    network, windows = made()
    for layer in network.anatomy.layers:  # type: ignore[attr-defined]
        layer.self_attn.o_proj.weight.data.zero_()
        layer.mlp.gate_proj.weight.data *= 3
    own = sizes(network, windows)
    others = ct.random_windows(LENGTH, 1, 6)

    def last(of: ct.Windows) -> float:
        return float(ct.measure_jacobian(network, of, method="exact").profile().values[-1])

    with switched(network, own, norms="one", gate="one"):
        assert last(windows) == pytest.approx(last(others), rel=1e-5)
    with switched(network, own, norms="one"):
        assert abs(last(windows) / last(others) - 1) > 1e-3
    with switched(network, own, gate="one"):
        assert abs(last(windows) / last(others) - 1) > 1e-3


def test_everything_comes_back() -> None:
    network, windows = made()
    before = ct.measure_jacobian(network, windows, probes=2).energy
    own = sizes(network, windows)
    with switched(network, own, norms="one", gate="one"):
        assert not np.allclose(ct.measure_jacobian(network, windows, probes=2).energy, before, rtol=1e-3)
    assert np.array_equal(ct.measure_jacobian(network, windows, probes=2).energy, before)
