"""Training and measuring on the way: held-out text, step 0, later steps by another route, resuming, checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import catenary as ct
from catenary.errors import InvalidInput, MissingResource
from catenary.models.training import Recipe, Trainer
from catenary.store import read_run
from catenary.study.config import StudyConfig, study_config
from catenary.study.course import Course, checkpoints, stored_course
from catenary.study.evolve import EvolveStudy, evolve_model
from catenary.study.held_out import HeldOut, held_out_windows
from catenary.study.observer import Silent
from catenary.study.source import find_source
from catenary.text.documents import read_documents
from catenary.text.split import split_documents
from small_tokenizers import word_tokenizer
from tiny_models import TINY

WORDS, LENGTH = 200, 24
SAME = ("result.json", "profiles.nc", "profile.csv")
COURSE = Course(steps=5, every=2, sequences=3, training_documents=6)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a config, a tokenizer of whole words with BOS, and 30 documents, one of them twice."""
    folder = tmp_path_factory.mktemp("home")
    rng = np.random.default_rng(1)
    texts = [" ".join(f"w{n}" for n in rng.integers(0, WORDS, rng.integers(10, 90))) for _ in range(30)]
    lines = [json.dumps({"text": text}) for text in [*texts, texts[3]]]
    (folder / "texts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({**TINY["llama"], "vocab_size": WORDS + 3}), encoding="utf-8")
    word_tokenizer(WORDS, template="<s> $A").save_pretrained(model)
    return folder


def settings(home: Path, **changes: object) -> StudyConfig:
    values = {"model": str(home / "model"), "length": LENGTH, "documents": str(home / "texts.jsonl"), "chunk": 8}
    return study_config({**values, **changes})


def text_of(home: Path, course: Course = COURSE) -> HeldOut:
    return held_out_windows(settings(home), course, find_source(settings(home)))


@pytest.fixture(scope="module")
def finished(home: Path, tmp_path_factory: pytest.TempPathFactory) -> EvolveStudy:
    return evolve_model(settings(home), COURSE, tmp_path_factory.mktemp("run"))


def measured(model: Any, windows: Any) -> np.ndarray:
    return np.asarray(ct.measure_jacobian(model, windows, probes=1, seed=0).energy[0, 0, 0])


def test_what_is_measured_was_never_trained_on(home: Path) -> None:
    text = text_of(home)
    assert text.training is not None
    documents = {d.name: d.text for d in read_documents(home / "texts.jsonl")}
    training = set(text.training.names)
    assert len(training) == 6
    shown = {p["document"] for w in text.windows.values() for source in w.sources for p in source["pieces"]}
    assert shown
    assert not shown & training
    assert not {documents[name] for name in shown} & {documents[name] for name in training}
    assert text.report["skipped"] == {"the same as another one": 1}
    assert text.report["held_out"] == 24


def test_training_windows_are_runs_of_one_training_document(home: Path) -> None:
    split = split_documents(
        read_documents(home / "texts.jsonl"), word_tokenizer(WORDS, template="<s> $A"), length=LENGTH, count=4, seed=2
    )
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(400):
        window = split.training.window(rng)
        assert window[0] == 1  # one BOS, as the measured windows have
        assert len(window) == LENGTH
        found = [
            (d, first) for d, ids in enumerate(split.training.tokens) for first in range(len(ids) - LENGTH + 2)
            if (ids[first : first + LENGTH - 1] == window[1:]).all()
        ]
        assert len(found) == 1
        seen.add(found[0])
    possible = sum(len(ids) - LENGTH + 2 for ids in split.training.tokens)
    assert len(seen) > 0.6 * possible, "starts are drawn over the whole document"
    assert {d for d, _ in seen} == {0, 1, 2, 3}


def test_step_0_is_the_untrained_network(home: Path, finished: EvolveStudy) -> None:
    sample, windows = finished.sample, text_of(home).windows
    assert sample.conditions == ("vanilla", "chunked")
    assert sample.steps == (0, 2, 4, 5)
    assert sample.energy.shape == (2, 4, 1, 3, 1, LENGTH)
    model = ct.load(str(home / "model"), seed=0)
    for c, kind in enumerate(("vanilla", "chunked")):
        assert np.array_equal(sample.energy[c, 0, 0], measured(model, windows[kind]))


def test_later_steps_are_the_network_trained_by_hand(home: Path, finished: EvolveStudy) -> None:
    """The same windows drawn and the same updates made outside of the study."""
    from catenary.study.units import derived_seed

    text, model = text_of(home), ct.load(str(home / "model"), seed=0)
    trainer = Trainer(model, Recipe(steps=5))
    losses = []
    for step in range(5):
        rng = np.random.default_rng(derived_seed(0, "update", step))
        assert text.training is not None
        losses.append(trainer.step(text.training.window(rng)[None]))
    assert finished.losses == tuple(losses)
    again = ct.Model(model.module, model.anatomy, model.name, model.config, "given")
    assert np.array_equal(finished.sample.energy[0, 3, 0], _same_probes(again, text))
    assert not np.allclose(finished.sample.energy[0, 3, 0], finished.sample.energy[0, 0, 0], rtol=1e-4)


def _same_probes(model: ct.Model, text: HeldOut) -> np.ndarray:
    return measured(model, text.windows["vanilla"])


class Stop(Exception):
    """What a kill is to a process, at a chosen moment."""


class Killer(Silent):
    """Stops the run when so much of it is done."""

    def __init__(self, after: int) -> None:
        self.left = after

    def advance(self, windows: int) -> None:
        self.left -= windows
        if self.left < 0:
            raise Stop


@pytest.mark.parametrize("every", [1, 3, 100])
def test_killed_it_resumes_to_the_same_bytes(home: Path, finished: EvolveStudy, tmp_path: Path, every: int) -> None:
    made: dict[str, int] = {}
    for after in (0, 4, 11, 20, 26):
        with pytest.raises(Stop):
            evolve_model(settings(home), COURSE, tmp_path, Killer(after), checkpoint_every=every)
        assert not (tmp_path / "result.json").exists()
        now = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "units").glob("step*.npy")}
        assert made.items() <= now.items(), "a finished step was measured again"
        made = now
    evolve_model(settings(home), COURSE, tmp_path, checkpoint_every=every)
    assert made.items() <= {p.name: p.stat().st_mtime_ns for p in (tmp_path / "units").glob("step*.npy")}.items()
    for name in SAME:
        assert (tmp_path / name).read_bytes() == (finished.run.folder / name).read_bytes(), name
    assert not (tmp_path / "checkpoint.safetensors").exists()


def test_a_step_lost_before_the_checkpoint_is_measured_by_training_anew(home: Path, tmp_path: Path) -> None:
    with pytest.raises(Stop):
        evolve_model(settings(home), COURSE, tmp_path, Killer(20), checkpoint_every=1)
    lost = min((tmp_path / "units").glob("step*.npy"))
    lost.unlink()
    study = evolve_model(settings(home), COURSE, tmp_path, checkpoint_every=1)
    assert lost.is_file()
    assert study.sample.energy.shape[1] == 4


def test_a_finished_run_is_kept(home: Path, finished: EvolveStudy) -> None:
    folder = finished.run.folder
    again = evolve_model(settings(home), COURSE, folder)
    assert again.reused
    with pytest.raises(InvalidInput, match=r"different: course"):
        evolve_model(settings(home), COURSE.model_copy(update={"rate": 1e-3}), folder)
    config, course = stored_course(folder / "result.json")
    assert course == COURSE
    assert evolve_model(config, course, folder).reused
    assert read_run(folder).result["chunk"] == 8


def test_published_checkpoints(home: Path, tmp_path: Path) -> None:
    """Folders inside MODEL: each profile is that of the folder's own network, on windows of all documents."""
    import shutil

    shutil.copytree(home / "model", tmp_path / "run")
    models = [ct.load(str(home / "model"), seed=seed) for seed in (4, 5, 6)]
    for model, name in zip(models, ("checkpoint-10", "checkpoint-200", "final"), strict=True):
        model.module.save_pretrained(tmp_path / "run" / name)
    course = Course(sequences=3, revisions="checkpoint-10,checkpoint-200,final=300")  # type: ignore[arg-type]
    config = settings(home, model=str(tmp_path / "run"))
    study = evolve_model(config, course, tmp_path / "out")
    assert study.sample.steps == (10, 200, 300)
    assert study.losses == ()
    windows = text_of(home, course).windows
    for s in range(3):
        trained = ct.load(tmp_path / "run" / ("checkpoint-10", "checkpoint-200", "final")[s], weights="pretrained")
        assert np.array_equal(study.sample.energy[1, s, 0], measured(trained, windows["chunked"]))
        by_seed = measured(ct.Model(models[s].module, models[s].anatomy, "x", {}, "given"), windows["chunked"])
        assert np.allclose(study.sample.energy[1, s, 0], by_seed, rtol=1e-5)
    with pytest.raises(MissingResource, match=r"no checkpoint 'step7' in .*checkpoint-10, checkpoint-200, final"):
        evolve_model(config, Course(revisions=("step7",)), tmp_path / "other")


def test_names_of_checkpoints() -> None:
    assert checkpoints(("step0", "step1000", "main=143000")) == {0: "step0", 1000: "step1000", 143000: "main"}
    assert checkpoints(("out/v2/checkpoint-5",)) == {5: "out/v2/checkpoint-5"}
    for wrong in (("main",), ("step2", "step1"), ("step1", "a=1"), ("=3",), ("a=b",)):
        with pytest.raises(InvalidInput):
            checkpoints(wrong)


def test_what_cannot_be_done_is_said_before_it_starts(home: Path, tmp_path: Path) -> None:
    def refused(words: str, course: Course = COURSE, budget: float = 60.0, **changes: object) -> None:
        with pytest.raises(InvalidInput, match=words):
            evolve_model(settings(home, **changes), course, tmp_path, budget_minutes=budget)

    refused("more than the budget of 0 s; give --budget", budget=0.0)
    refused("must hold 60 texts of at least 23 tokens", COURSE.model_copy(update={"training_documents": 60}))
    refused("conditions must be vanilla, chunked or both", conditions="uniform")
    refused("weights must be untrained or pretrained", COURSE.model_copy(update={"weights": "new"}))
    refused("final_rate must be <= rate", COURSE.model_copy(update={"final_rate": 0.1}))
    refused("dtype must be float32 to train", dtype="bfloat16")
    assert not (tmp_path / "units").exists()


def test_the_verb_writes_a_page_and_reruns_from_its_record(home: Path, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from catenary.cli.main import app

    common = ["--documents", str(home / "texts.jsonl"), "--quiet", "--json", "--length", str(LENGTH), "--chunk", "8"]
    first = ["evolve", str(home / "model"), "--steps", "5", "--every", "2", "--sequences", "3"]
    first += ["--training-documents", "6", *common, "--out", str(tmp_path / "a")]
    done = CliRunner().invoke(app, first)
    assert done.exit_code == 0, done.exception
    shown = json.loads(done.stdout)
    assert shown["finding"] == "evolve"
    assert len(shown["results"]["losses"]) == 5
    assert {"evolve.html", "evolve.csv", "evolve.json", "profiles.nc"} <= {p.name for p in (tmp_path / "a").iterdir()}
    again = CliRunner().invoke(app, ["evolve", "--rerun", str(tmp_path / "a" / "result.json"), "--quiet", "--out",
                                     str(tmp_path / "b")])  # fmt: skip
    assert again.exit_code == 0, again.exception
    for name in (*SAME, "evolve.html", "evolve.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    assert CliRunner().invoke(app, first).exit_code == 0, "a finished run with its page is shown again"
    wrong = CliRunner().invoke(app, ["evolve", "--rerun", str(home / "texts.jsonl")])
    assert isinstance(wrong.exception, InvalidInput)


@pytest.mark.parametrize("name", ["cpu.json", "gpu.json"])
def test_shipped_settings_are_read(name: str) -> None:
    config, course = stored_course(Path(__file__).parent.parent / "experiments" / "evolve" / name)
    assert config.conditions == ("vanilla", "chunked")
    assert (course.steps, course.rate, course.final_rate, course.weight_decay) == (100, 5e-4, 5e-5, 0.1)


def test_memory_is_refused_before_the_network_is_drawn(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("catenary.study.evolve_cost.usable_memory", lambda _: 1000.0)
    monkeypatch.setattr("catenary.study.evolve.load_net", lambda *_: pytest.fail("drawn"))
    with pytest.raises(InvalidInput, match="GiB for weights, gradients and moments"):
        evolve_model(settings(home), COURSE, tmp_path)
