"""Networks whose weights are elsewhere or packed are measured as they are, or refused by name; nothing is moved."""

from __future__ import annotations

import tempfile

import numpy as np
import pytest
import torch

import catenary as ct
from catenary.errors import NotApplicable
from catenary.measure.attention_statistics import measure_attention
from catenary.measure.pathways import measure_paths
from catenary.measure.rollout import measure_rollout
from catenary.measure.strengths import measure_strengths
from catenary.models.anatomy import dissect, pilot_vectors
from catenary.models.model import adopt
from catenary.models.passing import check_passing
from catenary.models.undisturbed import undisturbed
from tiny_models import TINY, token_windows

WINDOWS = token_windows(2)


def network(family: str = "llama") -> torch.nn.Module:
    return ct.load(TINY[family]).module.requires_grad_(True)


def on_cpu_when_it_runs(module: torch.nn.Module) -> torch.nn.Module:
    from accelerate import cpu_offload

    return cpu_offload(module)


def on_disk(module: torch.nn.Module) -> torch.nn.Module:
    from accelerate import disk_offload

    return disk_offload(module, tempfile.mkdtemp())


def in_parts(module: torch.nn.Module) -> torch.nn.Module:
    from accelerate import dispatch_model

    places = {"model.embed_tokens": "disk", "model.layers.0": "cpu", "model.layers.1": "disk", "model.norm": "cpu",
              "model.rotary_emb": "cpu", "lm_head": "disk"}  # fmt: skip
    return dispatch_model(module, places, main_device="cpu", offload_dir=tempfile.mkdtemp(), force_hooks=True)


def state(module: torch.nn.Module) -> list[tuple[str, torch.device, torch.dtype, bool]]:
    return [(name, p.device, p.dtype, p.requires_grad) for name, p in module.named_parameters()]


@pytest.fixture(params=[on_cpu_when_it_runs, on_disk, in_parts])
def placed(request: pytest.FixtureRequest) -> torch.nn.Module:
    pytest.importorskip("accelerate", reason="accelerate is not installed: no module can be dispatched")
    return request.param(network())


@pytest.mark.filterwarnings("ignore")  # accelerate tells that parameters are on the meta device
def test_a_dispatched_network_gives_the_same_numbers_and_is_left_where_it_was(placed: torch.nn.Module) -> None:
    before, plain = state(placed), adopt(network())
    assert any(device.type == "meta" for _, device, _, _ in before)
    held = adopt(placed)
    assert held.device.type == "cpu"
    assert held.fingerprint == plain.fingerprint
    for measure in (
        lambda model: ct.measure_jacobian(model, WINDOWS, probes=2).energy,
        lambda model: ct.measure_jacobian(model, WINDOWS, probes=2, output="logits", recompute=True).energy,
        lambda model: ct.measure_jacobian(model, WINDOWS, probes=2, target_layer=1).energy,
        lambda model: measure_rollout(model, WINDOWS, schedule=0.3).energy,
        lambda model: measure_attention(model, WINDOWS).value_sink,
        lambda model: measure_paths(model, WINDOWS, probes=1).energy,
        lambda model: np.array(measure_strengths(model, WINDOWS).values()),
    ):
        np.testing.assert_array_equal(measure(held), measure(plain))
    assert state(placed) == before


@pytest.mark.parametrize(("dtype", "near"), [(torch.bfloat16, 0.15), (torch.float16, 0.02)])
def test_half_types_stay_what_they_are(dtype: torch.dtype, near: float) -> None:
    """Rounding has 2^-8 and 2^-11 per operation; energies of two layers move by some of these."""
    module = network().to(dtype)
    before = state(module)
    found = ct.measure_jacobian(module, WINDOWS, probes=2)
    assert state(module) == before
    assert found.provenance["model"]["dtype"] == str(dtype).removeprefix("torch.")
    np.testing.assert_allclose(found.energy, ct.measure_jacobian(network(), WINDOWS, probes=2).energy, rtol=near)


class Packed(torch.nn.Module):
    """A linear map with weights in int8 and a scale per row, as weight-only quantisation keeps them."""

    def __init__(self, linear: torch.nn.Linear) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(linear.weight.detach().abs().amax(1, keepdim=True) / 127)
        rounded = (linear.weight.detach() / self.scale).round().to(torch.int8)
        self.weight = torch.nn.Parameter(rounded, requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ (self.weight * self.scale).T.to(x)


class Rounding(Packed):
    """The same with its input rounded too: derivatives are 0 wherever they exist."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = x.detach().abs().amax() / 127
        return super().forward((x / size).round() * size)


def with_linear(kind: type[Packed]) -> torch.nn.Module:
    module = network()
    for layer in module.model.layers:  # type: ignore[union-attr]  # a Llama
        layer.mlp.down_proj = kind(layer.mlp.down_proj)
    return module


def test_weights_in_int8_are_measured_and_stay() -> None:
    """Against the same network with the rounded weights written out in float32."""
    module, plain = with_linear(Packed), network()
    before = state(module)
    for ours, theirs in zip(module.model.layers, plain.model.layers, strict=True):  # type: ignore[union-attr]
        with torch.no_grad():
            theirs.mlp.down_proj.weight.copy_(ours.mlp.down_proj.weight * ours.mlp.down_proj.scale)
    found, expected = (ct.measure_jacobian(held, WINDOWS, method="exact").energy for held in (module, plain))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert state(module) == before


def test_rounded_activations_are_refused_by_name() -> None:
    with pytest.raises(NotApplicable, match=r"model\.layers\.\d\.mlp\.down_proj \(Rounding\) gives no gradient"):
        ct.measure_jacobian(with_linear(Rounding), WINDOWS)


@pytest.mark.filterwarnings("ignore")  # torch.ao tells that it is going to move
def test_dynamic_quantisation_of_torch_is_refused_by_name() -> None:
    """Its linear maps say that they have a gradient and give none: the profile would be the residual stream's."""
    if "onednn" not in torch.backends.quantized.supported_engines and "fbgemm" not in (
        torch.backends.quantized.supported_engines
    ):
        pytest.skip("this build of torch has no engine for quantised linear maps")
    quantised = torch.ao.quantization.quantize_dynamic(network(), {torch.nn.Linear}, dtype=torch.qint8)
    with pytest.raises(NotApplicable, match=r"\(Linear\) gives no gradient, though its output depends on its input"):
        ct.measure_jacobian(quantised, WINDOWS)


def test_what_the_check_refuses_has_a_wrong_derivative() -> None:
    """A central difference over steps well above the rounding against autograd, on both sides of the check."""
    for kind, right in ((Packed, True), (Rounding, False)):
        module = with_linear(kind)
        anatomy = dissect(module)
        vectors = pilot_vectors(anatomy.embedding).requires_grad_(True)
        mask = torch.ones(vectors.shape[:2], dtype=torch.long)
        step = 0.02 * torch.randn(vectors.shape, generator=torch.Generator().manual_seed(1)) * vectors.std()
        with undisturbed(module):
            out = anatomy.stream(vectors.clone(), mask)[0, -1]
            cotangent = torch.linspace(-1, 2, out.numel())
            (gradient,) = torch.autograd.grad(out, vectors, cotangent)
            with torch.no_grad():
                moved = [anatomy.stream(vectors + sign * step, mask)[0, -1] @ cotangent for sign in (1, -1)]
        seen, said = float(moved[0] - moved[1]) / 2, float((gradient * step).sum().detach())
        assert (abs(seen / said - 1) < 0.02) == right


def test_every_kind_of_innermost_module_passes_in_sound_networks() -> None:
    for family in TINY:
        module = network(family)
        check_passing(module, dissect(module))
