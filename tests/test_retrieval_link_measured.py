"""What a held-out prompt shows, against direct autograd and whole attention maps, and the study that keeps it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import catenary as ct
import catenary.cli.main
from catenary.cli.app import app
from catenary.errors import InvalidInput, NotApplicable
from catenary.measure.jacobian import measure_jacobian
from catenary.measure.probes import cotangent
from catenary.models.load import load
from catenary.models.model import Model
from catenary.page.link import link_section
from catenary.retrieval.boxes.calls import BoxScorer, Callback
from catenary.retrieval.case import Case, Segment
from catenary.retrieval.link import LinkTable, agree, judge_link, make_prompt
from catenary.retrieval.link.measured import read_prompt
from catenary.retrieval.link.prompt import LinkPrompt
from catenary.retrieval.outcomes import Outcomes
from catenary.retrieval.scoring.encode import Encoder
from catenary.retrieval.scoring.network import NetworkScorer
from catenary.retrieval.statistics import slot_curve
from catenary.retrieval.tasks import load_task
from catenary.study.link import held_out, read_held_out
from small_tokenizers import byte_tokenizer
from tiny_models import TINY

RUN = CliRunner()
SPANS = ((2, 5), (5, 6), (8, 11))


def tiny(name: str = "llama", **more: Any) -> Model:
    return load({**TINY[name], **more}, seed=3, dtype="float64")


def prompt_of(seed: int = 0, length: int = 12, gold: int = 1) -> LinkPrompt:
    ids = np.random.default_rng(seed).integers(1, 50, length)
    return LinkPrompt(ids, 7, SPANS, gold)


def by_hand(model: Model, prompt: LinkPrompt, which: str, sample: int = 0) -> np.ndarray:
    """Gradient norms by slot from the module alone: its own forward, a hook on its last layer, one slot at a time."""
    module = model.module
    embedded = module.get_input_embeddings()(torch.from_numpy(prompt.ids)[None]).detach().requires_grad_(True)
    kept: list[torch.Tensor] = []

    def keep(_: Any, __: Any, out: Any) -> None:
        kept.append(out[0] if isinstance(out, tuple) else out)

    layer = model.anatomy.layers[-1]
    handle = layer.register_forward_hook(keep)
    logits = module(inputs_embeds=embedded).logits[0, -1]
    handle.remove()
    if which == "jacobian":
        v = torch.from_numpy(cotangent(16, seed=0, net=0, sequence=sample, probe=0))
        out = (v * kept[0].reshape(-1, 16)[-1]).sum()
    else:
        out = logits[prompt.answer] if which == "logit" else torch.log(logits.exp()[prompt.answer] / logits.exp().sum())
    out.backward()
    gradient = embedded.grad[0]
    return np.array([float(gradient[span[0] : span[1]].norm()) for span in prompt.spans if span])


@pytest.mark.parametrize("name", ["llama", "gpt2", "qwen3"])
@pytest.mark.parametrize("which", ["jacobian", "logit", "logp"])
def test_slot_norms_equal_direct_autograd(name: str, which: str) -> None:
    model, prompt = tiny(name), prompt_of()
    found = read_prompt(model, prompt, sample=4, birth=False).rows[which]
    np.testing.assert_allclose(found, by_hand(model, prompt, which, sample=4), rtol=1e-9)


def test_relative_is_weighed_by_the_size_of_each_token() -> None:
    model, prompt = tiny(), prompt_of()
    single = replace(prompt, spans=((3, 4), (5, 6), (9, 10)))
    rows = read_prompt(model, single, birth=False).rows
    sizes = model.embedding_weight.detach()[torch.from_numpy(single.ids[[3, 5, 9]])].norm(dim=-1).numpy()
    np.testing.assert_allclose(rows["relative"], rows["jacobian"] * sizes, rtol=1e-12)


def test_attention_equals_whole_maps_of_eager() -> None:
    """One pass with sdpa, without a map, against the maps that the network's eager code returns."""
    model, prompt = tiny(), prompt_of()
    found = read_prompt(model, prompt, birth=False).rows["attention"]
    other = load({**TINY["llama"]}, seed=3, dtype="float64", attention="eager")
    maps = other.module(torch.from_numpy(prompt.ids)[None], output_attentions=True).attentions
    row = torch.stack([layer[0, :, -1] for layer in maps]).mean((0, 1)).detach().numpy()
    np.testing.assert_allclose(found, [row[a:b].sum() for a, b in SPANS], rtol=1e-6)  # eager: float32
    assert (model.attention, other.attention) == ("sdpa", "eager")


def test_probes_average_to_the_exact_norm() -> None:
    model, prompt = tiny(), prompt_of()
    exact = measure_jacobian(model, prompt.ids[None], method="exact").energy[0, 0, 0, 0, 0]
    wanted = np.sqrt([exact[a:b].sum() for a, b in SPANS])
    squares = [read_prompt(model, prompt, sample=n, birth=False).rows["jacobian"] ** 2 for n in range(150)]
    np.testing.assert_allclose(np.sqrt(np.mean(squares, axis=0)), wanted, rtol=0.12)


def test_the_birth_row_is_the_birth_law_of_the_prompts_tokens() -> None:
    model, prompt = tiny(), prompt_of()
    values = ct.predict(model.architecture, length=12, ids=prompt.ids).values
    expected = [np.sqrt((values[a:b] ** 2).sum()) for a, b in SPANS]
    np.testing.assert_allclose(read_prompt(model, prompt).rows["birth"], expected, rtol=1e-12)
    assert np.isnan(read_prompt(model, prompt, birth=False).rows["birth"]).all()
    undescribed = replace(model, architecture=None)
    assert "does not describe" in read_prompt(undescribed, prompt).missing["birth"]


def test_what_a_network_does_not_have_is_named() -> None:
    mamba = load({
        "model_type": "mamba", "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4, "vocab_size": 50,
        "initializer_range": 0.2, "bos_token_id": 0, "eos_token_id": 0,
    })  # fmt: skip
    found = read_prompt(mamba, prompt_of())
    assert found.missing["attention"] == "no layer has a softmax attention"
    assert set(found.missing) == {"attention"}  # the birth law does read state spaces
    assert set(found.rows) == {"jacobian", "relative", "logit", "logp", "birth"}
    assert all(np.isfinite(row).all() for row in found.rows.values())


def test_the_network_is_left_as_it_was() -> None:
    model = tiny()
    model.module.train()
    before = {name: p.requires_grad for name, p in model.module.named_parameters()}
    read_prompt(model, prompt_of())
    assert model.module.training
    assert before == {name: p.requires_grad for name, p in model.module.named_parameters()}
    assert all(p.grad is None for p in model.module.parameters())
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.module.modules())


def test_a_slot_that_a_prompt_does_not_mark_is_nan() -> None:
    rows = read_prompt(tiny(), replace(prompt_of(), spans=(None, (5, 6), None)), birth=False).rows
    assert all(np.isnan(row).tolist() == [True, False, True] for name, row in rows.items() if name != "birth")


# --- the trap of a log-probability's gradient ---


def test_saturation_reverses_the_gradient_of_the_log_probability() -> None:
    """A network that is surer of its answer where the fact stands better: its readout is scaled by the slot's quality.

    Gradients are read at the same tokens. The logit's is proportional to the scale; that of log p, about 1 - p times as
    large, falls to nothing. The link calls the first an agreement and the second a reversal.
    """
    quality = (40.0, 30.0, 18.0, 12.0, 15.0, 22.0)
    generator = np.random.default_rng(0)
    prompts = [generator.integers(1, 50, 14) for _ in range(4)][1::2]
    rows: dict[str, list[np.ndarray]] = {"logit": [], "logp": []}
    scored, gold = [], []
    for j, scale in enumerate(quality):
        model = tiny(initializer_range=0.3)
        with torch.no_grad():
            model.module.lm_head.weight.mul_(scale)
        for ids in prompts:
            logits = model.module(torch.from_numpy(ids)[None]).logits[0, -1]
            found = read_prompt(model, LinkPrompt(ids, int(logits.argmax()), ((4, 6),) * 6, j), birth=False)
            for name, kept in rows.items():
                kept.append(found.rows[name])
            gold.append(j)
            scored.append(float(logits.log_softmax(-1).max().detach()))
    table = LinkTable(tuple(range(6)), 6, tuple(gold), {name: np.stack(kept) for name, kept in rows.items()})
    own, blank = np.array(scored).reshape(6, 2).T, [[""] * 6] * 2
    outcomes = Outcomes("t", ("a", "b"), tuple(range(6)), 6, {"logp": own}, blank, blank, [[0] * 6] * 2)
    link = agree(slot_curve(outcomes, "logp"), table, resamples=400)
    assert link.agreements["logit-gold"].spearman.value == pytest.approx(1)
    assert link.agreements["logp-gold"].spearman.value == pytest.approx(-1)
    assert link.agreements["logit-gold"].curve == pytest.approx(np.array(quality) / np.mean(quality))
    verdict = judge_link(link)
    assert (verdict.by["logit-gold"], verdict.by["logp-gold"]) == ("agrees", "runs against")
    assert any(note.endswith("Read the logit's. It does here.") for note in verdict.notes)


# --- prompts in tokens ---


def test_spans_and_the_answers_first_token() -> None:
    tokenizer = byte_tokenizer(template="<s> $A")
    encoder = Encoder(tokenizer)
    case = Case("s", (Segment("in: "), Segment("one ", 0), Segment("two ", 1), Segment("q:")), ("xy",), 1, lead=" ")
    prompt = make_prompt(encoder, case, (0, 1))
    texts = [tokenizer.decode(prompt.ids[a:b]) for a, b in filter(None, prompt.spans)]
    assert texts == ["one ", "two "]
    assert tokenizer.decode(prompt.ids).endswith("q: ")
    assert tokenizer.decode([prompt.answer]) == "x"
    assert prompt.gold == 1
    assert make_prompt(encoder, case, (1, 5)).spans[1] is None
    with pytest.raises(InvalidInput, match="one of the slots"):
        make_prompt(encoder, case, (0,))


# --- the study ---


def scorer_of(seed: int = 3, **more: Any) -> NetworkScorer:
    config = {**TINY["llama"], "vocab_size": 280, "max_position_embeddings": 400}
    return NetworkScorer(load(config, seed=seed), byte_tokenizer(template="<s> $A"), max_new_tokens=3, **more)


def test_prompts_resume_to_the_same_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catenary.study.link.BIRTH_PROMPTS", 2)
    task = load_task("key-value", pairs=4, prefix=4, count=9)
    options: dict[str, Any] = {"scored": 4, "prompts": 5, "slots": (0, 2, 3)}
    table, notes = read_held_out(task, scorer_of(), tmp_path, **options)
    assert (table.n, table.gold, notes) == (5, (0, 1, 2, 0, 1), ())
    units = sorted((tmp_path / "units").iterdir())
    assert [unit.name[:10] for unit in units] == [f"link-{n:05d}" for n in range(4, 9)]
    for unit in units[1:3]:
        unit.unlink()
    stamps = [unit.stat().st_mtime_ns for unit in units if unit.exists()]
    again, _ = read_held_out(task, scorer_of(), tmp_path, **options)
    fresh, _ = read_held_out(task, scorer_of(), None, **options)
    assert np.isfinite(table.rows["birth"]).all(axis=1).tolist() == [True, True, False, False, False]
    for name, rows in table.rows.items():
        np.testing.assert_array_equal(rows, again.rows[name])
        np.testing.assert_array_equal(rows, fresh.rows[name])
    assert stamps == [unit.stat().st_mtime_ns for k, unit in enumerate(units) if k not in (1, 2)]
    # another seed, and another network, are other units
    read_held_out(task, scorer_of(), tmp_path, **options, seed=1)
    read_held_out(task, scorer_of(seed=4), tmp_path, **options)
    assert len(list((tmp_path / "units").iterdir())) == 15
    units[0].write_text("{}")
    with pytest.raises(InvalidInput, match="not what was written"):
        read_held_out(task, scorer_of(), tmp_path, **options)


def test_prompts_are_samples_that_were_not_scored() -> None:
    task = load_task("key-value", pairs=4, prefix=4, count=9)
    chosen = held_out(task, 6, 3, (0, 2, 3))
    assert chosen == ((6, 0), (7, 1), (8, 2))
    scored = {task.case(n, 0).text for n in range(6)}
    assert not scored & {task.case(n, 0).text for n, _ in chosen}
    with pytest.raises(InvalidInput, match="the task has 9, and 6 may be scored"):
        held_out(task, 6, 4, (0, 2, 3))


def test_a_prompt_that_does_not_fit_is_left_out_and_said() -> None:
    task = load_task("key-value", pairs=4, prefix=4, count=4)
    with pytest.raises(InvalidInput, match="longer than 50 tokens"):
        read_held_out(task, scorer_of(max_length=50), scored=2, prompts=2, slots=(0, 1))


def test_a_black_box_has_no_link() -> None:
    box = BoxScorer(Callback(lambda prompts: ["" for _ in prompts], "box"))
    with pytest.raises(NotApplicable, match="black box"):
        read_held_out(load_task("key-value", pairs=4, count=4), box, scored=2, prompts=2, slots=(0, 1))


def test_needles_mark_their_own_slot_alone() -> None:
    """A long text has no documents: what is read at the fact's place is all there is."""
    task = load_task("needle", length=60, depths=3, count=5)
    table, _ = read_held_out(task, scorer_of(), scored=2, prompts=3, slots=(0, 1, 2))
    logs = table.logs("jacobian")
    assert not isinstance(logs, str)
    assert np.isfinite(logs).sum(axis=1).tolist() == [1] * 3
    assert isinstance(table.logs("logit"), str)


def test_the_command_writes_link_and_gains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("catenary.study.link.BIRTH_PROMPTS", 2)
    folder = tmp_path / "model"
    load({**TINY["llama"], "vocab_size": 280, "max_position_embeddings": 400}, seed=3).module.save_pretrained(folder)
    byte_tokenizer(template="<s> $A").save_pretrained(folder)
    call = ["retrieve", folder, "--quiet", "--positions", 6, "--samples", 9, "--max-new-tokens", 2, "--link", 12,
            "--task-option", "pairs=6", "--task-option", "prefix=4"]  # fmt: skip
    done = RUN.invoke(app, [str(one) for one in (*call, "--out", tmp_path / "a")])
    assert done.exit_code == 0, done.output
    assert ", 12 held-out prompts." in done.output
    assert "Gain in log-probability over the given order" in done.output
    record = json.loads((tmp_path / "a" / "retrieve.json").read_text())["results"]
    link = record["link"]["by_metric"]["logp"]
    assert {one["predictor"] for one in link["predictors"]} >= {"jacobian", "attention", "birth", "end", "edges"}
    assert record["link"]["gold_slots"] == [0, 1, 2, 3, 4, 5] * 2
    assert np.array(record["link"]["rows"]["jacobian"]).shape == (12, 6)
    assert "by Jacobian" in record["order"]["logp"]["gains"]["gain"]
    assert "no link with the curve" not in done.output.lower()
    page = (tmp_path / "a" / "retrieve.html").read_text()
    assert page.count("<table class=\"numbers") >= 3
    assert "without slot 0" in page
    units = sorted(unit.name for unit in (tmp_path / "a" / "units").iterdir())
    assert len([name for name in units if name.startswith("link")]) == 12
    late = RUN.invoke(app, [str(one) for one in (*call, "--task-option", "count=15", "--out", tmp_path / "b")])
    assert "ask for fewer --samples or a smaller --link" in str(late.exception)
    assert not list(tmp_path.glob("b/units/*"))


def test_a_section_without_any_link_says_why() -> None:
    table = LinkTable((0, 1), 2, (0, 1), {"jacobian": np.ones((2, 2))})
    section = link_section({}, table, (), {"logp": "samples must be two or more"})
    assert "No link with the curve by log-probability: samples must be two or more" in section.notes
    assert section.tables == ()


@pytest.mark.demo
def test_six_samples_of_a_trained_network(demo_folder: Path, tmp_path: Path) -> None:
    """The command of the documentation at CI size: curve, gains, link and page from one call, and a first slot that
    stands above the middle, as in every run on this network."""
    book = demo_folder / "factbook"
    if not book.is_dir():
        pytest.skip(f"no factbook in {demo_folder}; fetch it with: make facts")
    call = ["retrieve", demo_folder / "smollm2-135m", "--task", "facts", "--data", book, "--samples", 6, "--positions",
            3, "--link", 2, "--max-new-tokens", 4, "--task-option", "fields=1", "--task-option", "documents=5",
            "--metric", "logp", "--quiet", "--out", tmp_path]  # fmt: skip
    done = RUN.invoke(app, [str(one) for one in call])
    assert done.exit_code == 0, done.output
    results = json.loads((tmp_path / "retrieve.json").read_text())["results"]
    mean = results["metrics"]["logp"]["curve"]["mean"]
    assert mean[0] > mean[1]
    link = results["link"]["by_metric"]["logp"]
    assert link["samples"] == 6
    jacobian, attention = (np.array(results["link"]["rows"][name]) for name in ("jacobian", "attention"))
    assert jacobian.shape == (2, 3)
    assert (attention.sum(axis=1) < 1).all()
    assert (attention[:, 0] > attention[:, 1]).all()
    assert results["order"]["logp"]["words"].startswith("What the order gains is not reported: 6 complete samples")
    assert ", 2 held-out prompts." in done.output
