"""Layers without a softmax: covariances and gradients against loops over tokens, groups against single positions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import catenary as ct
from catenary.architecture import Alibi, GatedRecurrence, ShortConvolution
from catenary.errors import NotApplicable
from catenary.theory.birth import singles
from catenary.theory.feed_forward.activations import activation
from catenary.theory.positions.pairs import Pairs
from catenary.theory.recurrent import channels, single
from catenary.theory.recurrent.convolution import ConvolutionMixer
from catenary.theory.recurrent.memory import Memory
from catenary.theory.recurrent.mixer import recurrent_mixer
from catenary.theory.recurrent.reading import Drive, Read
from catenary.theory.recurrent.steps import fixed_decay, step_decay
from catenary.theory.recurrent.streams import PassedStream, Stream
from catenary.theory.recurrent.taps import Taps
from families.recurrent import RECURRENT_CASES
from oracles import recurrent as oracle

LENGTH = 4


def covariance(seed: int, length: int = LENGTH) -> NDArray[np.float64]:
    """A positive matrix with a large diagonal."""
    draws = np.random.default_rng(seed).normal(size=(length, 3 * length)) + 0.4
    return draws @ draws.T / (3 * length)


def pairs(matrix: NDArray[np.float64]) -> Pairs:
    return Pairs(matrix.copy(), matrix.diagonal().copy())


def passed(matrix: NDArray[np.float64], mean: NDArray[np.float64]) -> PassedStream:
    return PassedStream(Stream(activation("silu"), 1.0), pairs(matrix), pairs(matrix), mean)


def test_taps_move_both_tokens() -> None:
    x, d = covariance(0, 9), covariance(1, 9)
    taps = Taps(np.ones(9), 3)
    np.testing.assert_allclose(taps.earlier(pairs(x)).matrix, oracle.tapped(x, 3), atol=1e-14)
    sent = taps.later(pairs(d)).matrix
    assert (sent * x).sum() == pytest.approx((d * oracle.tapped(x, 3)).sum(), rel=1e-12)


def test_convolution_is_exact_for_drawn_weights() -> None:
    """Forward and gradient energies of one gated convolution over 4,000 networks of width 24."""
    width, length, rng = 24, 7, np.random.default_rng(0)
    word = ShortConvolution(32, 3, 0.3, 0.5, 0.2)
    x = rng.normal(size=(length, width))
    x /= np.sqrt((x**2).mean(1, keepdims=True))
    outcome = ConvolutionMixer(word, width, Taps(np.ones(length), 3)).forward(pairs(x @ x.T / width))
    cotangent = np.zeros((length, length))
    cotangent[-1, -1] = 1.0
    expected = outcome.passed.backward(pairs(cotangent)).same
    forward, energy = np.zeros((length, length)), []
    for _ in range(4000):
        b, c, v = (rng.normal(size=(width, 32)) * word.input_std for _ in range(3))
        taps, out = rng.normal(size=(3, 32)) * word.tap_std, rng.normal(size=(32, width)) * word.output_std
        inner = (x @ b) * (x @ v)
        moved = sum(taps[k] * np.vstack([np.zeros((k, 32)), inner[: length - k]]) for k in range(3))
        y = (x @ c) * moved @ out
        forward += y @ y.T / width / 4000
        seen = out @ rng.normal(size=width)
        gradient = np.zeros_like(x)
        gradient[-1] = c @ (seen * moved[-1])
        for k in range(3):
            at = seen * (x @ c)[-1] * taps[k]
            gradient[length - 1 - k] += b @ (at * (x @ v)[length - 1 - k]) + v @ (at * (x @ b)[length - 1 - k])
        energy.append((gradient**2).mean(1))
    np.testing.assert_allclose(forward, outcome.added.matrix, atol=0.05 * forward.diagonal().max())
    np.testing.assert_allclose(np.mean(energy, 0)[-3:], expected[-3:], rtol=0.05)
    assert not expected[:-3].any()


@pytest.mark.parametrize("skip", [0.0, 0.7])
def test_reading_of_a_random_memory(skip: float) -> None:
    """Outputs, and the gradient of every stream as the derivative of the outputs in its moments."""
    query, key, value, d = (covariance(seed) for seed in range(2, 6))
    # Equal means at all tokens, as behind a norm: what the means cross with the skip is exact there.
    means = np.full(LENGTH, 0.3), np.full(LENGTH, 0.5)
    steps = oracle.Steps(1.5, 0.2, 0.8)
    heads = oracle.Heads(query, key, value, *means, 4, skip, steps)
    decay = step_decay(1.5, 0.2, 0.8)
    drive = Drive(passed(query, means[0]), passed(key, means[1]), passed(value, means[0]), 4)
    read = Read.of(Memory(decay, singles(LENGTH)(Alibi(decay.slope))), drive, skip)
    np.testing.assert_allclose(read.outputs.matrix, heads.outputs(), rtol=1e-9)
    found = read.backward(pairs(d))
    for name in ("query", "key", "value"):
        expected = derivative(heads, name, d)
        np.testing.assert_allclose(getattr(found, name).matrix, expected, rtol=1e-6, atol=1e-8, err_msg=name)
    assert found.step is not None
    expected = [(d * heads.outputs((token, token))).sum() for token in range(LENGTH)]
    np.testing.assert_allclose(found.step.same, expected, rtol=1e-8)
    across = (d * heads.outputs((1, 2))).sum()
    # Of two tokens the later one's decay also acts on what the earlier one's derivative holds, which is left out.
    scale = np.sqrt(found.step.same[1] * found.step.same[2])
    assert abs(found.step.matrix[1, 2] - across) / scale < 0.05, (found.step.matrix[1, 2], across, scale)


def derivative(heads: oracle.Heads, name: str, d: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of sum(d * outputs) in one stream's moments, one ordered pair of tokens at a time; outputs are linear in them."""
    result = np.zeros((LENGTH, LENGTH))
    zero = replace(heads, **{name: np.zeros((LENGTH, LENGTH))})
    base = (d * zero.outputs()).sum()
    for i, j in np.ndindex(LENGTH, LENGTH):
        one = np.zeros((LENGTH, LENGTH))
        one[i, j] = 1.0
        result[i, j] = (d * replace(heads, **{name: one}).outputs()).sum() - base
    return (result + result.T) / 2


def test_fixed_decay_is_the_limit_of_sure_steps() -> None:
    z, decay = pairs(covariance(7)), fixed_decay(0.4)
    sure = step_decay(0.4, float(np.log(np.e - 1)), 1e-9)
    positions = singles(LENGTH)(Alibi(0.4))
    np.testing.assert_allclose(
        Memory(sure, positions).state(z).matrix, Memory(decay, positions).state(z).matrix, rtol=1e-6
    )
    powers = np.tril(np.exp(-0.4 * np.subtract.outer(np.arange(LENGTH), np.arange(LENGTH))))
    np.testing.assert_allclose(Memory(decay, positions).state(z).matrix, powers @ z.matrix @ powers.T, rtol=1e-12)


def test_stream_averages_over_drawn_kernels() -> None:
    """silu of a convolution over 3 taps of variance near 1, which is not Gaussian over channels."""
    rng, x = np.random.default_rng(3), covariance(8)
    x /= np.sqrt(np.outer(x.diagonal(), x.diagonal()))
    stream = Stream(activation("silu"), 2.0, Taps(np.ones(LENGTH), 3), 0.6).forward(pairs(x))
    taps = rng.normal(size=(200_000, 3)) * 0.6**0.5
    raw = rng.normal(size=(200_000, LENGTH)) @ np.linalg.cholesky(2.0 * x).T
    moved = sum(taps[:, k, None] * np.hstack([np.zeros((200_000, k)), raw[:, : LENGTH - k]]) for k in range(3))
    values = moved / (1 + np.exp(-moved))
    np.testing.assert_allclose(values[:, 2:].mean(0), stream.mean[2:], rtol=0.02)
    np.testing.assert_allclose((values**2).mean(0)[2:], stream.value.same[2:], rtol=0.02)


@pytest.mark.parametrize("name", ["lfm2", "minimax", "bamba"])
def test_groups_agree_with_single_positions(name: str) -> None:
    """The norm at every position within .5 %, with repeated tokens."""
    case = RECURRENT_CASES[name]
    architecture = ct.read_config({"model_type": name, **case.config})
    architecture = replace(architecture, layers=architecture.layers[1:3])
    exact, coarse = (
        ct.predict(architecture, length=160, repeat_probability=0.1, method=method).values
        for method in ("exact", "coarse")
    )
    np.testing.assert_allclose(coarse, exact, rtol=5e-3)


@pytest.mark.parametrize(("name", "std", "share"), [("nemotron_h", 0.15, 0.004), ("bamba", 0.15, 0.4)])
def test_states_average_over_groups_of_any_size(name: str, std: float, share: float) -> None:
    """Groups that no state's memory narrows, where states weigh: memories of 90 tokens (Nemotron H) and of one."""
    architecture = ct.read_config({"model_type": name, **RECURRENT_CASES[name].config, "initializer_range": std})
    assert max(mix.own_share(128) for layer in architecture.layers for mix in layer.recurrences) > share
    architecture = replace(architecture, layers=architecture.layers[-4:])
    exact, coarse = (ct.predict(architecture, length=400, method=method).values for method in ("exact", "coarse"))
    np.testing.assert_allclose(coarse, exact, rtol=2e-3)
    assert (ct.predict(architecture, length=1_000_000, method="coarse", finite_width=False).values > 0).all()


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("keep", [0.97, 0.3, 1e-5])
def test_compiled_sums_are_products_with_a_decay(keep: float, backward: bool) -> None:
    x, own = covariance(5, 60), np.random.default_rng(6).random(60)
    powers = np.tril(keep ** np.abs(np.subtract.outer(np.arange(60.0), np.arange(60.0))))
    decay = powers.T if backward else powers
    np.testing.assert_allclose(single.summed(x, keep, backward), decay @ x @ decay.T, rtol=1e-12)
    np.testing.assert_allclose(single.one_sided(x, keep, backward), decay @ x + x @ decay.T, rtol=1e-12)
    before = np.append(own[1:], 0.0) if backward else np.append(0.0, own[:-1])
    more = decay @ np.diag(own - keep**2 * before) @ decay.T
    np.testing.assert_allclose(single.with_own(x.copy(), keep, own, backward), x + more, rtol=1e-12)


def test_a_sum_that_decays_leaves_no_subnormal_numbers() -> None:
    last = np.zeros((3000, 3000))
    last[-1, -1] = 1.0
    sent = single.summed(last, 0.6, backward=True)
    assert sent[-1, 0] == 0.0
    assert not ((sent > 0) & (sent < np.finfo(np.float64).tiny)).any()


def test_streams_of_few_scales_match_pairs_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """One polynomial per pair of deviations, against one kernel per channel and token."""
    x = covariance(9, 12)
    stream = Stream(activation("silu"), 0.7, Taps(np.ones(12), 4), 0.6)
    d = x.diagonal()
    rho = pairs(x / np.sqrt(np.outer(d, d)))
    few = stream.forward(rho)
    monkeypatch.setattr(channels, "FEW", 0)
    many = stream.forward(rho)
    for name in ("value", "slope"):
        np.testing.assert_allclose(getattr(few, name).matrix, getattr(many, name).matrix, rtol=1e-10)
        np.testing.assert_allclose(getattr(few, name).same, getattr(many, name).same, rtol=1e-10)
    np.testing.assert_allclose(few.mean, many.mean, rtol=1e-12)


def test_gated_recurrence_is_that_of_drawn_blocks() -> None:
    """Output moments and gradient energies of transformers' own block, gates and all, over 200 draws of 96 channels.

    Standard errors are up to 8 % of the largest moment. Were the first token to enter as others do, its own moment
    would be a tenth of what it is.
    """
    torch = pytest.importorskip("torch")
    modeling = pytest.importorskip("transformers.models.recurrent_gemma.modeling_recurrent_gemma")
    width, length, w = 64, 6, 0.1
    config = modeling.RecurrentGemmaConfig(
        hidden_size=width, lru_width=96, num_attention_heads=4, num_hidden_layers=1,
        w_init_variance_scale=w, intermediate_size=64, vocab_size=8, pad_token_id=None,
    )  # fmt: skip
    word = GatedRecurrence(96, 4, "gelu_pytorch_tanh", width**-0.5, (w / 4) ** 0.5, 48**-0.5, (0.9, 0.999), w**2)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(length, width)) + rng.normal(size=width)
    x /= np.sqrt((x**2).mean(1, keepdims=True))
    outcome = recurrent_mixer(word, width, singles(length)).forward(pairs(x @ x.T / width))
    last = np.zeros((length, length))
    last[-1, -1] = 1.0
    expected = outcome.passed.backward(pairs(last)).same
    given, at = torch.tensor(x[None], dtype=torch.float32, requires_grad=True), torch.arange(length)[None]
    forward, energy = [], []
    for seed in range(200):
        torch.manual_seed(seed)
        block = modeling.RecurrentGemmaModel(config).layers[0].temporal_block
        out = block(given, at, None, use_cache=False)[0][0]
        forward.append((out @ out.T / width).detach().numpy())
        (gradient,) = torch.autograd.grad(out[-1] @ torch.randn(width), given)
        energy.append((gradient[0] ** 2).mean(1).numpy())
    for drawn, law in ((np.array(forward), outcome.added.matrix), (np.array(energy), expected)):
        error = drawn.std(0) / len(drawn) ** 0.5
        assert error.max() < 0.08 * law.max()
        assert (np.abs(drawn.mean(0) - law) < 3.5 * error + 0.02 * law).all(), (drawn.mean(0) / law, error / law)


def test_selective_state_space_is_that_of_drawn_blocks() -> None:
    """Output moments and gradient energies of transformers' own mixer over 150 draws, a tenth of them the states'.

    Standard errors are 5 to 15 %; whole networks, in which states alone carry far, are in the families' contract.
    """
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = {"hidden_size": 64, "num_hidden_layers": 1, "state_size": 8, "time_step_rank": 4, "time_step_min": 0.1,
              "time_step_max": 1.0, "initializer_range": 0.13, "vocab_size": 8, "pad_token_id": None}  # fmt: skip
    architecture = ct.read_config({"model_type": "mamba", **config})
    (word,) = architecture.layers[0].recurrences
    rng, length = np.random.default_rng(1), 6
    x = rng.normal(size=(length, 64)) + rng.normal(size=64)
    x /= np.sqrt((x**2).mean(1, keepdims=True))
    outcome = recurrent_mixer(word, 64, singles(length)).forward(pairs(x @ x.T / 64))
    assert outcome.passed.outputs.same[-1] > 1.1 * outcome.passed.values.value.same[-1]
    last = np.zeros((length, length))
    last[-1, -1] = 1.0
    expected = outcome.passed.backward(pairs(last)).same
    given = torch.tensor(x[None], dtype=torch.float32, requires_grad=True)
    forward, energy = [], []
    for seed in range(150):
        torch.manual_seed(seed)
        made = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model("mamba", **config))
        out = made.backbone.layers[0].mixer(given)[0]
        forward.append((out @ out.T / 64).detach().numpy())
        (gradient,) = torch.autograd.grad(out[-1] @ torch.randn(64), given)
        energy.append((gradient[0] ** 2).mean(1).numpy())
    for drawn, law in ((np.array(forward), outcome.added.matrix), (np.array(energy), expected)):
        error = drawn.std(0) / len(drawn) ** 0.5
        assert error.max() < 0.1 * law.max()
        assert (np.abs(drawn.mean(0) - law) < 3.5 * error + 0.05 * law).all(), (drawn.mean(0) / law, error / law)


def test_groups_resolve_the_long_memories_of_gated_recurrences() -> None:
    """Behind windows only recurrences carry, over 250 tokens at most: .5 % of the norm."""
    config = {**RECURRENT_CASES["recurrent_gemma"].config, "attention_window_size": 100, "w_init_variance_scale": 0.01}
    architecture = ct.read_config({"model_type": "recurrent_gemma", **config})
    exact, coarse = (ct.predict(architecture, length=600, method=method).values for method in ("exact", "coarse"))
    np.testing.assert_allclose(coarse, exact, rtol=5e-3)


def test_repeated_ids_fall_back_to_how_often_they_repeat() -> None:
    architecture = ct.read_config({"model_type": "lfm2", **RECURRENT_CASES["lfm2"].config})
    card = ct.predict(architecture, length=40, ids=np.arange(40) % 7).card
    assert card is not None
    assert any("repeated tokens have no law where a layer mixes by a ShortConvolution" in s for s in card.statements)


def test_unknown_activation_is_refused() -> None:
    architecture = ct.read_config({"model_type": "minimax", **RECURRENT_CASES["minimax"].config})
    (word,) = architecture.layers[0].recurrences
    with pytest.raises(NotApplicable, match="step"):
        recurrent_mixer(replace(word, activation="step"), 128, singles(4))
