"""Whether a network is surprised by a join, and smears recency, before and after it uses the order of its text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Int64

import catenary as ct
from catenary.boundaries import Layout
from catenary.page.exhibit import Plate
from catenary.reading import Reading
from catenary.reproduce import valley
from catenary.reproduce.demo import demo_path
from catenary.reproduce.drawing import lines
from catenary.reproduce.finding import STUDIES, Finding
from catenary.reproduce.letters import byte_tokenizer
from catenary.reproduce.resampling import norms
from catenary.reproduce.small import over_networks
from catenary.reproduce.standing import per_nat, rarity
from catenary.reproduce.surprisal import lost_by_shuffling, shuffled_inside, surprisal, surprise_at_joins
from catenary.study.observer import Observer, counting
from catenary.text.documents import Document
from catenary.text.windows import Windows

ARMS = ("tokens", "bytes", "shuffled bytes")
MEANINGS = {
    "nats lost by shuffling": "surprisal of a token of joined excerpts, each one's tokens shuffled, less as they are",
    "surprise at joins": "nats of a chunk's first token, less those of its neighbours 3 to 12 tokens away",
    "joins": "a chunk's first token over the same neighbours, log-mean",
    "log influence per nat": "of surprisal, inside excerpts, all over the neighbours; frequency held linearly",
    "smear 15%": "log10 of the last 15% without the last token over the 15% before, from random places of documents",
}

Runs = list[list[dict[str, float]]]
"""The numbers of ``MEANINGS`` by run and mark."""


def order_learned(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Train the same network by the same recipe on the same documents, cut into tokens, and into bytes.

    Of 49,152 tokens a hundred updates teach little but how often each occurs; of 256 bytes they teach what follows
    what. Tokens and bytes differ in more than that, such as in what a window covers. A third network gets the very
    windows of bytes, each in a random order: between it and the second nothing but the order of what they are taught
    differs. All are measured on text in its order. The smear is read on windows from random places: at the beginnings
    of documents a title's line and the like stand at much the same bytes, and influence differs with what is there.

    Settings: ``network`` (a config), ``tokenizer``, ``documents``, ``length``, ``chunk``, ``seeds``, ``steps``,
    ``marks`` (steps to measure at), ``windows`` (of each kind), ``training_documents``, ``device``. A seed draws
    weights, documents and windows. Intervals are Student's over seeds.
    """
    seeds, marks = list(map(int, settings["seeds"])), list(map(int, settings["marks"]))
    found: dict[str, Runs] = {arm: [] for arm in ARMS}
    steps = int(settings["steps"])
    with counting(observer, "updates", len(ARMS) * len(seeds) * steps) as progress:
        for arm in ARMS:
            for seed in seeds:
                found[arm].append(list(_followed(settings, arm, seed)))
                progress(sum(map(len, found.values())) * steps, 0)
    readings = [reading for arm in ARMS for reading in _readings(arm, found[arm], marks)]
    readings.append(over_networks(
        "change of smear 15%, bytes less shuffled bytes", _change(found["bytes"]) - _change(found["shuffled bytes"]),
        "the same change, by seed; mean over seeds",
    ))  # fmt: skip
    network, name = settings["network"], "nats lost by shuffling"
    caption = "How far recency is smeared, against what a network loses by shuffled text, at birth and after."
    curves = [
        (arm, [(_mean(found[arm], k, name), _mean(found[arm], k, "smear 15%")) for k in range(len(marks))])
        for arm in ARMS
    ]
    return Finding(
        f"{network['model_type']}, {network['num_hidden_layers']} layers of width {network['hidden_size']}, trained "
        f"from scratch on tokens, bytes and shuffled bytes, {steps} updates of one window of {settings['length']}, "
        f"{len(seeds)} runs each; {settings['windows']} held-out windows of each kind, one probe, float32",
        tuple(readings), (Plate("smear", lines(curves, x=f"{name}, per token", y="smear, dex"), caption, caption),),
        ("arm", "seed", "step", *MEANINGS),
        [(arm, seed, step, *run[k].values()) for arm in ARMS
         for seed, run in zip(seeds, found[arm], strict=True) for k, step in enumerate(marks)],
    )  # fmt: skip


def _followed(settings: Mapping[str, Any], arm: str, seed: int) -> Iterator[dict[str, float]]:
    """The numbers of ``MEANINGS`` at every mark of one run."""
    from catenary.models.training import Recipe, Trainer
    from catenary.text.chunked import chunked_windows

    tokenizer, held_out, draw = _text(settings, arm, seed)
    length, chunk = int(settings["length"]), int(settings["chunk"])
    common: dict[str, Any] = {"length": length, "count": int(settings["windows"]), "seed": seed}
    joined = chunked_windows(held_out, tokenizer, chunk=chunk, **common)
    single = _from_random_places(held_out, tokenizer, **common)
    mixed, layout, rare = shuffled_inside(joined, chunk, seed), Layout.of(length, chunk), rarity(joined)
    config = {**settings["network"], **({} if arm == "tokens" else {"vocab_size": len(tokenizer)})}
    network = ct.load(config, seed=seed, device=str(settings["device"]))
    trainer = Trainer(network, Recipe(int(settings["steps"])))
    for mark in map(int, settings["marks"]):
        while trainer.done < mark:
            trainer.step(draw()[None])
        nats = surprisal(network, joined)
        on_joined, on_single = (
            norms(ct.measure_jacobian(network, windows, probes=1, seed=seed)) for windows in (joined, single)
        )
        values = (
            lost_by_shuffling(nats, surprisal(network, mixed)), surprise_at_joins(nats, layout),
            valley.joins(on_joined, layout), per_nat(on_joined, nats, rare, layout),
            float(np.log10(valley.smear(on_single, 0.15))),
        )  # fmt: skip
        yield dict(zip(MEANINGS, values, strict=True))


def _from_random_places(held_out: Sequence[Document], tokenizer: Any, *, length: int, count: int, seed: int) -> Windows:
    """One window of each of the first ``count`` documents that are long enough, from anywhere in it."""
    from catenary.text.chunked import MOST_CHARACTERS
    from catenary.text.tokenise import tokenise_text

    generator, found = np.random.default_rng(seed), []
    for document in held_out:
        ids = tokenise_text(document.text, tokenizer, characters=MOST_CHARACTERS).ids
        if len(ids) >= length:
            first = int(generator.integers(0, len(ids) - length + 1))
            found.append(ids[first : first + length])
        if len(found) == count:
            break
    assert len(found) == count, "fewer documents than windows"
    return Windows(np.stack(found))


def _text(settings: Mapping[str, Any], arm: str, seed: int) -> tuple[Any, Any, Callable[[], Int64[np.ndarray, " L"]]]:
    """The arm's tokenizer, the documents that are held out, and what draws a window to train on.

    Documents are chosen by their length in tokens, for every arm the same ones; bytes are drawn alike whether
    shuffled or not.
    """
    from transformers import AutoTokenizer

    from catenary.text.chunked import MOST_CHARACTERS
    from catenary.text.documents import read_documents
    from catenary.text.split import split_documents
    from catenary.text.tokenise import opening, tokenise_text

    documents = read_documents(demo_path(str(settings["documents"])))
    tokenizer = AutoTokenizer.from_pretrained(demo_path(str(settings["tokenizer"])))
    split = split_documents(documents, tokenizer, length=int(settings["length"]),
                            count=int(settings["training_documents"]), seed=seed)  # fmt: skip
    training, draws, orders = split.training, np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    if arm != "tokens":
        tokenizer = byte_tokenizer()
        texts = {document.name: document.text for document in documents.read(Counter())}
        cut = (tokenise_text(texts[name], tokenizer, characters=MOST_CHARACTERS).ids for name in training.names)
        training = replace(training, tokens=tuple(cut), start=opening(tokenizer))
    if arm != "shuffled bytes":
        return tokenizer, split.held_out, lambda: training.window(draws)
    return tokenizer, split.held_out, lambda: orders.permutation(training.window(draws))


def _readings(arm: str, runs: Runs, marks: list[int]) -> Iterator[Reading]:
    *each, smear = MEANINGS
    for k, step in enumerate(marks):
        for name in each:
            yield over_networks(f"{name} at step {step}, {arm}", [run[k][name] for run in runs],
                                f"{MEANINGS[name]}; mean over runs")  # fmt: skip
    yield over_networks(f"change of {smear}, {arm}", _change(runs), "from first to last step: " + MEANINGS[smear])


def _change(runs: Runs) -> Any:
    return np.array([run[-1]["smear 15%"] - run[0]["smear 15%"] for run in runs])


def _mean(runs: Runs, mark: int, name: str) -> float:
    return float(np.mean([run[mark][name] for run in runs]))


STUDIES.register("order-learned", order_learned)
