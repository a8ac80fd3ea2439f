"""Every control on a network of which its claim holds, and on one of which it does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import catenary as ct
from catenary.architecture.attention import Attention
from catenary.architecture.kernels import Chunk, Window
from catenary.architecture.recurrent import ShortConvolution
from catenary.cli.main import app
from catenary.controls import CONTROLS, Check, Control, Subject, check_controls, make_subject, run_controls
from catenary.controls.first_token import first_token_ratios
from catenary.controls.reach import farthest
from catenary.controls.untouched import UNTOUCHED
from catenary.errors import InvalidInput, NotApplicable
from catenary.models.rope import is_rotary_off
from catenary.models.twin import twin
from catenary.text.documents import Documents
from families.measuring import build
from families.tiny import TINY as FAMILIES
from small_tokenizers import word_tokenizer
from tiny_models import TINY

NAMED = {control.name: control for control in CONTROLS}
LENGTH = 32
WORDS = 40
LLAMA = {**TINY["llama"], "initializer_range": 0.1}
WINDOWED = {**TINY["mistral"], "num_hidden_layers": 3, "sliding_window": 4}


def subject(model: ct.Model | torch.nn.Module, windows: int = 3, probes: int = 1, **options: Any) -> Subject:
    return make_subject(model, length=LENGTH, windows=windows, probes=probes, seed=0, **options)


def run(name: str, given: Subject) -> Check:
    (check,) = run_controls(given, [NAMED[name]], debug=True)
    assert (check.name, check.claim) == (name, NAMED[name].claim)
    json.dumps(check.to_dict())
    return check


def verdict(name: str, model: ct.Model, **options: Any) -> str:
    return run(name, subject(model, **options)).verdict


@pytest.fixture
def texts(tmp_path: Path) -> Documents:
    """Six documents of words that a tokenizer of ``WORDS`` words knows."""
    rng = np.random.default_rng(0)
    for number in range(6):
        text = " ".join(f"w{word}" for word in rng.integers(0, WORDS, 2 * LENGTH))
        (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
    return ct.read_documents(tmp_path)


def hooked(model: ct.Model, part: torch.nn.Module, change: Callable[[torch.Tensor], torch.Tensor]) -> ct.Model:
    """The model with the output of one of its parts changed on the way."""

    def hook(_: torch.nn.Module, __: Any, output: Any) -> Any:
        return (change(output[0]), *output[1:]) if isinstance(output, tuple) else change(output)

    part.register_forward_hook(hook)
    return model


@pytest.mark.parametrize(
    ("template", "bos", "chat", "expected", "counts"),
    [
        ("<s> $A", True, None, "holds", (1, 1, None, None)),
        (None, True, None, "holds", (0, 0, None, None)),
        (None, False, None, "holds", (0, 0, None, None)),
        ("<s> <s> $A", True, None, "does not hold", (1, 2, None, None)),
        ("<s> $A", True, "<s> ", "does not hold", (1, 1, 2, 1)),
        (None, True, "<s> ", "holds", (0, 0, 1, 1)),
        (None, True, "<s> <s> ", "does not hold", (0, 0, 2, 1)),
    ],
)
def test_bos(
    texts: Documents, template: str | None, bos: bool, chat: str | None, expected: str, counts: tuple[int | None, ...]
) -> None:
    tokenizer = word_tokenizer(WORDS, template=template, bos=bos)
    if chat is not None:
        tokenizer.chat_template = chat + "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    check = run("BOS", subject(ct.load(LLAMA), tokenizer=tokenizer, documents=texts))
    assert check.verdict == expected
    assert tuple(check.numbers[n] for n in ("in_windows", "by_tokenizer", "by_template", "behind_template")) == counts


def test_effect_of_bos(texts: Documents) -> None:
    options: dict[str, Any] = {"tokenizer": word_tokenizer(WORDS, template="<s> $A"), "documents": texts}
    assert verdict("BOS effect", ct.load(LLAMA), **options) == "holds"
    bos = options["tokenizer"].bos_token_id
    model = ct.load(LLAMA)

    def react(_: torch.nn.Module, arguments: Any, output: torch.Tensor) -> torch.Tensor:
        return output * torch.where(arguments[0][:, :1, None] == bos, 10.0, 1.0)

    model.anatomy.embedding.register_forward_hook(react)
    check = run("BOS effect", subject(model, **options))
    assert check.verdict == "does not hold"
    assert check.numbers["median_dex"] == pytest.approx(1, abs=0.3)  # inputs ten times larger in front of a norm
    assert verdict("BOS effect", ct.load(LLAMA)) == "not applicable"


def test_first_token() -> None:
    assert verdict("first token", ct.load(LLAMA)) == "holds"
    model = ct.load({**LLAMA, "num_hidden_layers": 3})

    def grow(stream: torch.Tensor) -> torch.Tensor:
        return torch.cat([100 * stream[:, :1], stream[:, 1:]], dim=1)

    check = run("first token", subject(hooked(model, model.anatomy.layers[0], grow)))
    assert (check.verdict, check.numbers["starts"]) == ("does not hold", 1)
    plain = first_token_ratios(subject(ct.load({**LLAMA, "num_hidden_layers": 3})))
    assert check.numbers["largest_ratio"] == pytest.approx(100 * plain[1], rel=0.2)
    # Layers add to the stream, and so leave less of the ratio.


@pytest.mark.parametrize(("model_type", "expected"), [("gpt2", "holds"), ("rwkv", "does not hold")])
def test_padding(model_type: str, expected: str) -> None:
    model = ct.load(TINY["gpt2"]) if model_type == "gpt2" else build(model_type)
    assert verdict("padding", model) == expected


def test_padding_whose_change_only_the_profile_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Position ids that count the padding, 0.1 and more in GPT-2."""
    from catenary.measure.feed import Feed

    monkeypatch.setattr(Feed, "positions", lambda self, rows: torch.arange(self.real.shape[1])[None])
    check = run("padding", subject(ct.load(TINY["gpt2"])))
    assert check.verdict == "does not hold"
    assert check.numbers["change_7_pads"] > 1e-3  # type: ignore[operator]


def test_causal() -> None:
    check = run("causal", subject(ct.load(LLAMA)))
    assert (check.verdict, check.numbers["leak"]) == ("holds", 0.0)
    model = ct.load(LLAMA)
    leaking = hooked(model, model.anatomy.layers[0], lambda stream: stream + 0.01 * stream.mean(1, keepdim=True))
    assert verdict("causal", leaking) == "does not hold"


def test_windows_in_force() -> None:
    check = run("window", subject(ct.load(WINDOWED)))
    assert check.verdict == "holds"
    assert {check.numbers[f"reach_{by}"] for by in ("by_config", "measured", "in_theory")} == {9}
    assert check.numbers["kinds_of_window_tested"] == 1
    model = ct.load(WINDOWED)

    def leak(stream: torch.Tensor) -> torch.Tensor:
        """One token further back than the window allows, in the last layer alone."""
        return stream + 0.1 * torch.nn.functional.pad(stream, (0, 0, 4, 0))[:, : stream.shape[1]]

    seen = run("window", subject(hooked(model, model.anatomy.layers[2], leak)))
    assert (seen.verdict, seen.numbers["reach_measured"]) == ("does not hold", 13)  # four, and nine from there
    long = run("window", subject(ct.load({**WINDOWED, "sliding_window": 100})))
    assert (long.verdict, long.numbers["reach_measured"]) == ("holds", LENGTH - 1)
    assert "longer than this context and not seen" in long.sentence


def test_one_layer_shows_a_leak_that_depth_hides() -> None:
    """Five windows of eight reach the whole context; only a single layer shows where its window ends."""
    config = {**WINDOWED, "num_hidden_layers": 5, "sliding_window": 8}
    model = ct.load(config)
    first = model.anatomy.layers[0]

    def leak(stream: torch.Tensor) -> torch.Tensor:
        return stream + 0.1 * torch.nn.functional.pad(stream, (0, 0, 8, 0))[:, : stream.shape[1]]

    assert verdict("window", ct.load(config)) == "holds"
    check = run("window", subject(hooked(model, first, leak)))
    assert (check.verdict, check.numbers["reach_measured"]) == ("does not hold", LENGTH - 1)
    assert "layer 0, 7 tokens by its config: measured 15 tokens back" in check.sentence


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma3_text", "llama4_text", "lfm2", "bamba", "gpt_oss"])
def test_reach_equals_that_of_boolean_matrices(name: str) -> None:
    """Route two: products of matrices that say which key a query of a layer sees."""
    case = FAMILIES[name]
    architecture = ct.read_config({"model_type": name, **case.config})
    for length in (5, 16, 40):
        row = np.arange(length) == length - 1
        for layer in reversed(architecture.layers):
            for step in reversed(layer.steps):
                sees = np.eye(length, dtype=bool)
                for branch in step.branches:
                    sees |= _sees(branch.mix, length)
                row = row @ sees
        assert farthest(architecture, length) == int(np.flatnonzero(row)[0])


def _sees(mix: Any, length: int) -> np.ndarray:
    query, key = np.indices((length, length))
    causal = key <= query
    if isinstance(mix, Attention):
        masks = [np.zeros_like(causal)]
        for group in mix.groups:
            kernel = group.kernel
            if isinstance(kernel, Window):
                masks.append(causal & (query - key < kernel.width))
            elif isinstance(kernel, Chunk):
                masks.append(causal & (query // kernel.width == key // kernel.width))
            else:
                masks.append(causal)
        return np.logical_or.reduce(masks)
    if isinstance(mix, ShortConvolution):
        return causal & (query - key < mix.taps)
    return np.eye(length, dtype=bool) if type(mix).__name__ == "FeedForward" else causal


def test_a_window_of_nothing_is_never_called_no_window() -> None:
    with pytest.raises(InvalidInput, match="sliding_window"):
        ct.read_config({**WINDOWED, "sliding_window": 0})
    module: Any = ct.load(WINDOWED).module
    module.config.sliding_window = 0
    with pytest.raises(InvalidInput, match="does not read 0 as 'no window'"):
        subject(module)


def test_rotary_positions() -> None:
    assert verdict("RoPE", ct.load(LLAMA)) == "holds"
    model = ct.load({**LLAMA, "model_type": "qwen2"})
    for name, weight in model.module.named_parameters():
        if name.endswith(("q_proj.bias", "k_proj.bias")):
            weight.data += 2  # every query and key points one way before it is turned: logits depend on distance
    assert verdict("RoPE", model) == "does not hold"
    assert verdict("RoPE", ct.load(TINY["gpt2"])) == "not applicable"
    assert verdict("RoPE", ct.load(LLAMA, rope=False)) == "not applicable"


def test_dtype() -> None:
    check = run("dtype", subject(ct.load(LLAMA)))
    assert check.verdict == "holds"
    assert 1e-4 < check.numbers["token_median_dex"] < 1e-2  # type: ignore[operator]
    model = ct.load(LLAMA)
    coarse = hooked(model, model.anatomy.layers[0], lambda stream: (stream + 100) - 100)
    assert verdict("dtype", coarse) == "does not hold"


def test_attention_implementations_and_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    names = ("attention", "attention maps")
    assert [verdict(name, ct.load(LLAMA)) for name in names] == ["holds", "holds"]
    assert verdict("attention maps", build("mamba2")) == "not applicable"
    assert verdict("attention", build("bloom")) == "not applicable"
    fused = ALL_ATTENTION_FUNCTIONS["sdpa"]

    def wrong(*given: Any, scaling: float, **named: Any) -> Any:
        return fused(*given, scaling=1.01 * scaling, **named)

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, "sdpa", wrong)
    assert [verdict(name, ct.load(LLAMA)) for name in names] == ["does not hold", "does not hold"]


def test_seeds() -> None:
    tiny = {**TINY["gpt2"], "n_embd": 8, "initializer_range": 0.3}
    narrow = run("seeds", subject(ct.load(tiny), windows=6, probes=8))
    assert narrow.verdict == "does not hold"
    wide = {**LLAMA, "hidden_size": 128, "intermediate_size": 256, "initializer_range": 0.02}
    check = run("seeds", subject(ct.load(wide), windows=6, probes=2))
    assert check.verdict == "holds"
    assert check.numbers["median_dex"] < narrow.numbers["median_dex"]  # type: ignore[operator]


def test_repeatable() -> None:
    assert verdict("repeatable", ct.load(LLAMA)) == "holds"
    model, generator = ct.load(LLAMA), torch.Generator().manual_seed(0)

    def noisy(stream: torch.Tensor) -> torch.Tensor:
        return stream + 1e-3 * torch.randn(stream.shape, generator=generator)

    assert verdict("repeatable", hooked(model, model.anatomy.layers[0], noisy)) == "does not hold"


def _disturb(change: Callable[[torch.nn.Module], object]) -> list[Check]:
    def act(given: Subject) -> Check:
        change(given.model.module)
        return Check("act", "holds", "done")

    return list(run_controls(subject(ct.load(LLAMA)), [Control("act", "", act), UNTOUCHED], debug=True))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda module: module.train(), "training: False -> True"),
        (lambda module: module.bfloat16(), "dtype: torch.float32 -> torch.bfloat16"),
        (lambda module: next(module.parameters()).requires_grad_(True), "requires_grad: False -> True"),
        (lambda module: next(module.parameters()).data.mul_(2), "bytes"),
        (lambda module: module.register_forward_hook(lambda *_: None), "hooks: 0 -> 1"),
        (lambda module: module.set_attn_implementation("eager"), "attention implementation: sdpa -> eager"),
    ],
)
def test_what_is_disturbed_is_named(change: Callable[[torch.nn.Module], object], what: str) -> None:
    check = _disturb(change)[-1]
    assert check.verdict == "does not hold"
    assert what in check.sentence


def test_a_module_in_use_is_left_as_it_is(texts: Documents) -> None:
    """A user's own network: training, in bfloat16, with gradient flags and a dropout that must not act."""
    config = {**LLAMA, "attention_dropout": 0.5, "tie_word_embeddings": True}
    module = ct.load(config).module.bfloat16().train().requires_grad_(True)
    state = torch.get_rng_state()
    checks = {
        check.name: check
        for check in check_controls(
            module, length=LENGTH, windows=2, tokenizer=word_tokenizer(WORDS, template="<s> $A"), documents=texts,
            debug=True,
        )
    }
    assert list(checks) == list(NAMED)
    for name in ("repeatable", "untouched", "padding", "attention", "causal"):
        assert checks[name].verdict == "holds", checks[name].sentence
    assert "bfloat16" in checks["untouched"].sentence
    assert module.training
    assert torch.equal(state, torch.get_rng_state())


def test_one_failure_stops_no_other_and_debug_raises() -> None:
    def fails(error: Exception) -> Control:
        def act(given: Subject) -> Check:
            raise error

        return Control(type(error).__name__, "claimed", act)

    controls = [fails(KeyError("lost")), fails(InvalidInput("mend it")), fails(NotApplicable("not here")), UNTOUCHED]
    given = subject(ct.load(LLAMA))
    checks = list(run_controls(given, controls))
    assert [check.verdict for check in checks] == ["could not run", "could not run", "not applicable", "holds"]
    assert [check.sentence for check in checks[1:3]] == ["mend it", "not here"]
    assert "internal error: KeyError" in checks[0].sentence
    assert "--debug" in checks[0].sentence
    with pytest.raises(KeyError):
        list(run_controls(given, controls, debug=True))


def test_trained_weights_without_a_tokenizer_read_random_ids() -> None:
    given = subject(ct.load(LLAMA).module)
    assert (given.windows.kind, given.windows.vectors) == ("uniform", "model")
    assert given.windows.ids.max() < 50


def test_a_twin_shares_weights_and_keeps_ties_and_the_original() -> None:
    model = ct.load({**LLAMA, "tie_word_embeddings": True})
    before = model.fingerprint
    same = twin(model, attention="eager")
    assert (same.attention, model.attention) == ("eager", "sdpa")
    ours = dict(model.module.named_parameters())
    assert all(weight is ours[name] for name, weight in same.module.named_parameters())
    half: Any = twin(model, dtype=torch.bfloat16).module
    assert half.lm_head.weight is half.model.embed_tokens.weight
    assert half.lm_head.weight.dtype == torch.bfloat16
    still = twin(model, rope=False)
    assert is_rotary_off(still.module)
    assert not is_rotary_off(model.module)
    assert model.fingerprint == before


def test_doctor_runs_the_controls() -> None:
    command = ["doctor", "toy", "--full", "--length", "32", "--windows", "2"]
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 0, done.stderr
    checks = json.loads(done.stdout)["controls"]["checks"]
    assert [check["name"] for check in checks] == list(NAMED)
    assert {check["verdict"] for check in checks} <= {"holds", "does not hold", "not applicable"}
    assert "13 controls on Model('toy untrained'" in done.stderr
    assert next(c for c in checks if c["name"] == "BOS")["verdict"] == "not applicable"


@pytest.mark.demo
def test_first_token_of_a_trained_network_is_massive(demo_folder: Path) -> None:
    model = ct.load(demo_folder / "smollm2-135m", weights="pretrained")
    given = make_subject(
        model, length=LENGTH, windows=2, probes=1, seed=0, tokenizer=model.tokenizer(),
        documents=ct.read_documents(demo_folder / "documents"),
    )  # fmt: skip
    first, opening = run("first token", given), run("BOS", given)
    assert first.verdict == "does not hold"
    assert first.numbers["largest_ratio"] > 100  # type: ignore[operator]
    assert (opening.verdict, opening.numbers["by_template"], opening.numbers["in_windows"]) == ("holds", 1, 0)
