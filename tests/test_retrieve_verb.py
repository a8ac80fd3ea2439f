"""catenary retrieve end to end: units that resume to the same bytes, budgets, sample counts, and the page."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import catenary.cli.main  # noqa: F401 - registers the verbs
from catenary.cli.app import app
from catenary.errors import InvalidInput, MissingResource
from catenary.page.exhibit import Plate
from catenary.page.retrieve import Section, retrieve_exhibit
from catenary.retrieval.boxes.calls import BoxScorer, Callback
from catenary.retrieval.case import Case, Segment
from catenary.retrieval.order.advice import advise
from catenary.retrieval.outcomes import Outcomes
from catenary.retrieval.records import read_outcomes
from catenary.retrieval.scoring.rates import rates
from catenary.retrieval.scoring.scored import Scored
from catenary.retrieval.statistics import samples_for, slot_curve, summarise
from catenary.retrieval.tasks import load_task
from catenary.study import retrieve as study
from catenary.study.retrieve import chosen_slots, score_samples
from catenary.study.retrieve_config import RetrieveConfig
from catenary.study.retrieve_source import load_samples
from small_tokenizers import byte_tokenizer
from tiny_models import TINY

RUN = CliRunner()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny network with weights and a tokenizer that prepends BOS, as files."""
    from catenary.models.load import load

    folder = tmp_path_factory.mktemp("model")
    config = {**TINY["llama"], "vocab_size": 280, "max_position_embeddings": 400}
    load(config, seed=3).module.save_pretrained(folder)
    byte_tokenizer(template="<s> $A").save_pretrained(folder)
    return folder


def called(model: Path, out: Path, *more: object) -> Any:
    arguments = ["retrieve", model, "--quiet", "--out", out, "--positions", 3, "--samples", 9, "--max-new-tokens", 4]
    options = ["--task-option", "pairs=4", "--task-option", "prefix=4", *more]
    return RUN.invoke(app, [str(one) for one in (*arguments, *options)], catch_exceptions=True)


def test_page_files_and_resuming(model: Path, tmp_path: Path) -> None:
    done = called(model, tmp_path / "a")
    assert done.exit_code == 0, done.output
    assert "best subspan" in done.output
    record = json.loads((tmp_path / "a" / "retrieve.json").read_text())
    outcomes = read_outcomes(tmp_path / "a" / "outcomes.json")
    assert outcomes.slots == (0, 2, 3)
    assert outcomes.values["logp"].shape == (9, 3)
    assert np.isfinite(outcomes.values["logp"]).all()
    curve = record["results"]["metrics"]["logp"]["curve"]
    assert curve["mean"] == pytest.approx(outcomes.values["logp"].mean(axis=0), rel=1e-12)
    assert curve["low"] == pytest.approx(slot_curve(outcomes, "logp").low)
    provenance = record["results"]["provenance"]
    assert provenance["scorer"]["encoder"]["bos"]["bos"] == 1
    assert provenance["scorer"]["route"] == "cached"
    assert len(provenance["scorer"]["model"]["fingerprint"]) == 64
    assert provenance["task"]["options"]["pairs"] == 4
    assert provenance["longest"] == 400
    assert 'Key: "' in record["results"]["first_prompt"]
    with (tmp_path / "a" / "retrieve.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 27
    assert float(rows[4]["logp"]) == outcomes.values["logp"][1, 1]
    page = (tmp_path / "a" / "retrieve.html").read_text()
    assert page.count("<svg") == 4
    # a second run from half of the units gives the same bytes
    (tmp_path / "b" / "units").mkdir(parents=True)
    units = sorted((tmp_path / "a" / "units").iterdir())
    assert len(units) == 9
    for unit in units[:5]:
        (tmp_path / "b" / "units" / unit.name).write_bytes(unit.read_bytes())
    assert called(model, tmp_path / "b").exit_code == 0
    for name in ("outcomes.json", "retrieve.json", "retrieve.csv", "retrieve.html"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    other = called(model, tmp_path / "a", "--seed", 1)
    assert "another config" in str(other.exception)


def test_a_model_that_cannot_hold_the_prompt_says_so(model: Path, tmp_path: Path) -> None:
    done = called(model, tmp_path, "--max-length", 64, "--json")
    assert done.exit_code == 0, done.output
    record = json.loads(done.output)
    assert "no verdict: samples must hold one that was scored" in record["verdict"]
    assert record["results"]["rates"]["skipped"] == [1, 1, 1]
    assert record["results"]["rates"]["empty"] == [None] * 3
    assert all("more than the 64 that fit" in why for why in record["data"]["skipped"])
    assert set(record["data"]["logp"]) == {None}
    assert "100% of prompts were skipped" not in record["verdict"]


def test_what_the_command_refuses(model: Path, tmp_path: Path) -> None:
    for more, said in (
        (["--task-option", "pairs"], "NAME=VALUE"),
        (["--task-option", "pears=4"], "Did you mean 'pairs'"),
        (["--task", "facts", "--data", tmp_path / "no"], "no"),
        (["--task", "key-value", "--data", "x.jsonl"], "reads a file"),
        (["--chat", "on"], "chat template"),
        (["--endpoint", "http://localhost:1"], "one of them"),
        (["--metric", "bleu"], "metric"),
    ):
        done = called(model, tmp_path / "x", *more)
        assert isinstance(done.exception, InvalidInput), (more, done.output)
        assert said in str(done.exception)


def test_a_file_is_a_task(model: Path, tmp_path: Path) -> None:
    rows = [
        {"question": f"Who is {n}?", "answers": [f"no{n}"], "gold": f"{n} is no{n}.",
         "distractors": ["One is who.", "Two is how."]} for n in range(3)
    ]  # fmt: skip
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    done = RUN.invoke(
        app, ["retrieve", str(model), "--data", str(path), "--quiet", "--json", "--out", str(tmp_path / "o"),
              "--max-new-tokens", "2"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    record = json.loads(done.output)
    assert "The task has 3 samples, fewer than the 60 asked for." in record["results"]["notes"]
    assert record["results"]["provenance"]["task"]["task"] == "questions"
    assert len(record["data"]["slot"]) == 9


# --- the loop, with a box that knows what it does ---


class Coins:
    """Samples whose answer is right by a coin of the sample, so that positions differ by a known spread."""

    name, slots = "coins", 3

    def __init__(self, count: int = 500, closed: bool = False) -> None:
        self.count, self.closed = count, closed

    def __len__(self) -> int:
        return self.count

    def case(self, sample: int, slot: int) -> Case:
        segments = tuple(Segment(f"{sample} {slot} {n} ", n) for n in range(3))
        return Case(f"c{sample}", segments, ("yes",), slot)

    def closed_book(self, sample: int) -> Case | None:
        return Case(f"c{sample}", (Segment(f"{sample} - 0"),), ("yes",), None) if self.closed and sample % 2 else None

    def oracle(self, sample: int) -> None:
        return None

    def record(self) -> dict[str, Any]:
        return {"task": "coins", "options": {}}


def toss(prompts: Sequence[str]) -> list[str]:
    def right(prompt: str) -> bool:
        sample, slot = prompt.split()[:2]
        return slot == "-" or np.random.default_rng([int(sample), int(slot)]).random() < 0.5

    return ["yes" if right(prompt) else "" for prompt in prompts]


def test_resolve_stops_where_the_difference_would_be_seen() -> None:
    found = score_samples(Coins(), BoxScorer(Callback(toss, "coins")), samples=500, resolve=0.2, metric="exact")
    n = len(found.outcomes.samples)
    # two independent fair coins differ with sd sqrt(1/2)
    assert n == pytest.approx(samples_for(0.2, 0.5**0.5), rel=0.2)
    assert f"{n} are enough" in found.notes[-1]
    tight = score_samples(Coins(), BoxScorer(Callback(toss, "coins")), samples=20, resolve=0.01, metric="exact")
    assert len(tight.outcomes.samples) == 20
    assert "20 are not enough" in tight.notes[-1]


def test_the_budget_stops_between_samples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = [0.0]
    monkeypatch.setattr(study.time, "monotonic", lambda: now[0])

    def slow(prompts: Sequence[str]) -> list[str]:
        now[0] += 30
        return toss(prompts)

    def run(minutes: float) -> Any:
        scorer = BoxScorer(Callback(slow, "slow"))
        return score_samples(Coins(), scorer, tmp_path, samples=9, budget_minutes=minutes)

    found = run(1.6)
    assert len(found.outcomes.samples) == 3
    assert "3 of 9 samples were scored: at 30.0 s each" in found.notes[0]
    now[0] = 0
    more = run(1.0)  # three are there already, two more fit
    assert len(more.outcomes.samples) == 5
    assert len(run(0).outcomes.samples) == 6


def test_baselines_where_a_sample_has_them() -> None:
    found = score_samples(Coins(closed=True), BoxScorer(Callback(toss, "coins")), samples=4).outcomes
    closed = found.baselines["closed book"]["exact"]
    assert np.isnan(closed).tolist() == [True, False, True, False]
    assert closed[1] == 1
    assert set(found.baselines) == {"closed book"}
    expected = [[toss([f"{s} {slot}"]) == ["yes"] for slot in range(3)] for s in range(4)]
    assert found.values["exact"].tolist() == expected


def test_a_unit_changed_by_hand_is_not_believed(tmp_path: Path) -> None:
    scorer = BoxScorer(Callback(toss, "coins"))
    score_samples(Coins(), scorer, tmp_path, samples=1)
    (unit,) = (tmp_path / "units").iterdir()
    unit.write_text('{"results": [{"place": 0}], "sample": "c0"}')
    with pytest.raises(InvalidInput, match="not what was written"):
        score_samples(Coins(), scorer, tmp_path, samples=1)


def test_units_of_other_prompts_or_answers_are_not_mixed_in(tmp_path: Path) -> None:
    class Other(Coins):
        def case(self, sample: int, slot: int) -> Case:
            return Case(f"c{sample}", super().case(sample + 7, slot).segments, ("yes",), slot)

    class Answers(Coins):
        def case(self, sample: int, slot: int) -> Case:
            return Case(f"c{sample}", super().case(sample, slot).segments, ("no",), slot)

    scorer = BoxScorer(Callback(toss, "coins"))
    for task in (Coins(), Other(), Answers()):
        kept = score_samples(task, scorer, tmp_path, samples=4).outcomes
        assert kept.answers == score_samples(task, scorer, samples=4).outcomes.answers
    assert len(list((tmp_path / "units").iterdir())) == 12
    score_samples(Coins(), BoxScorer(Callback(toss, "another")), tmp_path, samples=1)
    assert len(list((tmp_path / "units").iterdir())) == 13


def test_slots_and_rates() -> None:
    assert chosen_slots(20, 10) == (0, 2, 4, 6, 8, 11, 13, 15, 17, 19)
    assert chosen_slots(3, 10) == (0, 1, 2)
    assert chosen_slots(9, 1) == (0,)
    with pytest.raises(InvalidInput):
        chosen_slots(9, 0)
    row = [Scored(text="a", ended=True), Scored(text=" ", apart=True), Scored(skipped="long")]
    found = rates([row, [Scored(text="a"), Scored(skipped="long"), row[2]]])
    assert found.skipped.tolist() == [0, 0.5, 1]
    assert found.empty.tolist()[:2] == [0, 1]
    assert found.truncated.tolist()[:2] == [0.5, 1]
    assert found.apart.tolist()[:2] == [0, 1]
    assert np.isnan([found.empty[2], found.truncated[2], found.apart[2]]).all()


def test_tasks_get_their_samples_seed_and_length(model: Path) -> None:
    made = load_samples(RetrieveConfig(model="m", samples=7, seed=5))
    assert (len(made), made.record()["options"]["seed"]) == (7, 5)
    assert len(load_samples(RetrieveConfig(model="m", samples=4, task="ab-order"))) == 4

    class Counting:
        class encoder:
            @staticmethod
            def count(text: str) -> int:
                return len(text.split())

    config = RetrieveConfig(model="m", samples=1, task="needle", length=50, task_options={"depths": 3})
    words = load_samples(config, Counting())  # type: ignore[arg-type]
    letters = load_samples(config)
    assert len(words.case(0, 0).text.split()) == pytest.approx(75, abs=35)
    assert len(letters.case(0, 0).text) < len(words.case(0, 0).text)


def test_another_measurement_has_a_place_on_the_page() -> None:
    found = score_samples(Coins(), BoxScorer(Callback(toss, "coins")), samples=9)
    plain = retrieve_exhibit(found, "best_subspan", {"model": "m"})
    plate = Plate("more", plain.plates[0].chart, "more", "more")
    section = Section("link", (plate,), ("it is linked",), (("rank", "1"),), {"rho": 1.0})
    more = retrieve_exhibit(found, "best_subspan", {"model": "m"}, sections=[section])
    assert [one.name for one in more.plates] == ["accuracy", "rates", "more"]
    assert "it is linked" in more.notes
    assert more.results["link"] == {"rho": 1.0}
    assert isinstance(found.outcomes, Outcomes)


# --- what a first user stumbled over ---


def flat(count: int, level: float) -> Outcomes:
    """Samples that are right at every slot or at none, so that no sample differs between slots."""
    rows = np.repeat((np.arange(count) < level * count).astype(float)[:, None], 7, axis=1)
    blank, ones = [[""] * 7] * count, [[9] * 7] * count
    names = tuple(f"s{n}" for n in range(count))
    return Outcomes("t", names, tuple(range(7)), 7, {"exact": rows}, blank, blank, ones)


def test_no_verdict_by_log_probability_of_a_black_box() -> None:
    with pytest.raises(InvalidInput, match="only for a network"):
        score_samples(Coins(), BoxScorer(Callback(toss, "coins")), samples=3, metric="logp")


@pytest.mark.parametrize("level", [0.0, 1 / 9, 0.3, 1.0])
def test_samples_that_never_differ_say_nothing_of_what_they_would_show(level: float) -> None:
    outcomes = flat(9, level)
    found = summarise(outcomes, "exact")
    assert found.paired_sd == 0.0
    assert np.isnan(found.detectable)
    study_of = study.RetrieveStudy(outcomes, rates([[Scored(text="yes", ended=True, tokens=9)] * 7] * 9), (), (), "")
    numbers = dict(retrieve_exhibit(study_of, "exact", {}).numbers)
    assert numbers["difference seen with 80 % power, exact"] == "unknown: no sample differs between slots"
    assert numbers["tokens of a prompt"] == "9"


def test_resolve_goes_on_where_no_sample_differs() -> None:
    never = BoxScorer(Callback(lambda prompts: ["no"] * len(prompts), "never"))
    found = score_samples(Coins(), never, samples=30, resolve=0.05, metric="exact")
    assert len(found.outcomes.samples) == 30
    assert "not known: none of 30 differs in exact" in found.notes[-1]


def test_a_wrong_task_is_refused_before_a_network_is_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from catenary.study import retrieve_source

    def load(*_: object) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr(retrieve_source, "make_scorer", load)
    for more, said in (
        (["--task", "fact"], "Did you mean 'facts'"),
        (["--task", "needel", "--length", "300"], "Did you mean 'needle'"),
        (["--data", tmp_path], "--task needle --data"),
        (["--task", "questions", "--data", tmp_path], "is a folder"),
        (["--data", tmp_path / "no.jsonl"], "no .jsonl"),
    ):
        done = RUN.invoke(app, ["retrieve", "m", *map(str, more), "--out", str(tmp_path / "o")])
        assert isinstance(done.exception, (InvalidInput, MissingResource)), (more, done.exception)
        assert said in str(done.exception)


def test_options_of_a_network_are_refused_for_an_endpoint(tmp_path: Path) -> None:
    for more in (["--max-length", "9"], ["--tokenizer", "t"], ["--bos", "one"]):
        asked = ["retrieve", "--endpoint", "http://127.0.0.1:9", "--endpoint-model", "m", *more]
        done = RUN.invoke(app, [*asked, "--out", str(tmp_path / "o")])
        assert isinstance(done.exception, InvalidInput), done.output
        assert "of a network" in str(done.exception)


def test_dropped_distractors_are_said(tmp_path: Path) -> None:
    rows = [
        {"question": "Who?", "answers": ["Ann"], "gold": "It is Ann.", "distractors": ["Ann too.", "Bob.", "Cy."]},
        {"question": "Who?", "answers": ["Ann"], "gold": "It is Ann.", "distractors": ["Di.", "Bob.", "Cy."]},
    ]
    path = tmp_path / "q.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    box = BoxScorer(Callback(lambda prompts: ["Ann"] * len(prompts), "ann"))
    found = score_samples(load_task(str(path)), box, samples=2)
    assert "Data: 1 distractors that hold an answer were dropped." in found.notes
    fewer = score_samples(load_task(str(path), documents=4), box, samples=2)
    assert any("1 records with fewer usable documents" in note for note in fewer.notes)


def test_a_sentence_names_a_few_reasons() -> None:
    held = flat(20, 0.5)
    values = held.values["exact"].copy()
    values[:12] = np.nan
    why = [[f"{n} tokens are too many"] * 7 if n < 12 else [""] * 7 for n in range(20)]
    outcomes = replace(held, values={"exact": values}, skipped=why)
    (line,) = slot_curve(outcomes, "exact").lines()
    assert "63 more for 9 other reasons" in line
    assert line.count("too many") == 3


def test_one_slot_has_no_order() -> None:
    held = flat(9, 0.5)
    cut = [row[:1] for row in held.skipped]
    one = replace(
        held, slots=(0,), of=1, values={"exact": held.values["exact"][:, :1]}, skipped=cut, answers=cut,
        tokens=[[9]] * 9,
    )  # fmt: skip
    with pytest.raises(InvalidInput, match=r"two slots or more to order documents by, got \(0,\)"):
        advise(one, metric="exact")
