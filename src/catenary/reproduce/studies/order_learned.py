"""Whether a network knows a join, and smears recency, once it has learned to use the order of its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

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
from catenary.reproduce.standing import inside, per_nat, rarity, standing
from catenary.reproduce.surprisal import excess, order_gain, shuffled_inside, surprisal
from catenary.study.observer import Observer, counting

MEANINGS = {
    "nats from order": "mean surprisal of joined excerpts with each one's tokens shuffled, less as they are",
    "surprise at joins": "nats of first tokens of chunks, less those of all others",
    "joins": "first token of a chunk over its neighbours 3 to 12 tokens away",
    "log influence per nat": "of surprisal, inside excerpts, between tokens of the same frequency",
    "smear 15%": "log10 of the last 15% without the last token over the 15% before, single documents",
}
ALPHABETS = ("tokens", "bytes")


def order_learned(settings: Mapping[str, Any], observer: Observer) -> Finding:
    """Train the same network by the same recipe on the same documents cut into tokens, and into bytes.

    Of 49,152 tokens a hundred updates teach little but how often each occurs; of 256 bytes they teach what follows
    what. All else is kept: updates, tokens per update, layers, width, recipe.

    Settings: ``network`` (a config), ``tokenizer``, ``documents``, ``length``, ``chunk``, ``seeds``, ``steps``,
    ``marks`` (steps to measure at), ``windows`` (of each kind), ``training_documents``, ``device``. A seed draws
    weights, documents and windows. Intervals are Student's over seeds.
    """
    seeds, marks = list(map(int, settings["seeds"])), list(map(int, settings["marks"]))
    found: dict[str, list[list[dict[str, float]]]] = {alphabet: [] for alphabet in ALPHABETS}
    with counting(observer, "updates", len(ALPHABETS) * len(seeds) * int(settings["steps"])) as progress:
        for alphabet in ALPHABETS:
            for seed in seeds:
                found[alphabet].append(list(_followed(settings, alphabet, seed)))
                progress(sum(map(len, found.values())) * int(settings["steps"]), 0)
    readings = [reading for alphabet in ALPHABETS for reading in _readings(alphabet, found[alphabet], marks)]
    gained = {name: np.array([run[-1]["smear 15%"] - run[0]["smear 15%"] for run in found[name]]) for name in ALPHABETS}
    readings.append(over_networks("change of smear 15%, bytes less tokens", gained["bytes"] - gained["tokens"],
                                  "the same change with bytes, less with tokens; mean over seeds"))  # fmt: skip
    network = settings["network"]
    caption = "How far recency is smeared, against what the order of the text is worth to the network, by update."
    curves = [(alphabet, [_mean(found[alphabet], k) for k in range(len(marks))]) for alphabet in ALPHABETS]
    return Finding(
        f"{network['model_type']}, {network['num_hidden_layers']} layers of width {network['hidden_size']}, trained "
        f"from scratch on tokens and on bytes, {settings['steps']} updates of one window of {settings['length']}, "
        f"{len(seeds)} runs each; {settings['windows']} held-out windows of each kind, one probe, float32",
        tuple(readings), (Plate("smear", lines(curves, x="nats from order", y="smear, dex"), caption, caption),),
        ("alphabet", "seed", "step", *MEANINGS),
        [(alphabet, seed, step, *run[k].values()) for alphabet in ALPHABETS
         for seed, run in zip(seeds, found[alphabet], strict=True) for k, step in enumerate(marks)],
    )  # fmt: skip


def _followed(settings: Mapping[str, Any], alphabet: str, seed: int) -> Iterator[dict[str, float]]:
    """The numbers of ``MEANINGS`` at every mark of one run."""
    from transformers import AutoTokenizer

    from catenary.models.training import Recipe, Trainer
    from catenary.text.chunked import chunked_windows
    from catenary.text.documents import read_documents
    from catenary.text.split import split_documents
    from catenary.text.vanilla import vanilla_windows

    tokens = alphabet == "tokens"
    tokenizer = AutoTokenizer.from_pretrained(demo_path(str(settings["tokenizer"]))) if tokens else byte_tokenizer()
    length, chunk, count = (int(settings[name]) for name in ("length", "chunk", "windows"))
    config = {**settings["network"], **({} if tokens else {"vocab_size": len(tokenizer)})}
    split = split_documents(read_documents(demo_path(str(settings["documents"]))), tokenizer, length=length,
                            count=int(settings["training_documents"]), seed=seed)  # fmt: skip
    common: dict[str, Any] = {"length": length, "count": count, "seed": seed}
    joined = chunked_windows(split.held_out, tokenizer, chunk=chunk, **common)
    single = vanilla_windows(split.held_out, tokenizer, **common)
    mixed, layout = shuffled_inside(joined, chunk, seed), Layout.of(length, chunk)
    network = ct.load(config, seed=seed, device=str(settings["device"]))
    trainer, generator = Trainer(network, Recipe(int(settings["steps"]))), np.random.default_rng(seed)
    for mark in map(int, settings["marks"]):
        while trainer.done < mark:
            trainer.step(split.training.window(generator)[None])
        text = surprisal(network, joined)
        curves = [norms(ct.measure_jacobian(network, windows, probes=1, seed=seed)) for windows in (joined, single)]
        values = (
            order_gain(text, surprisal(network, mixed)), excess(text, layout), valley.joins(curves[0], layout),
            per_nat(standing(curves[0], layout), inside(text, layout), inside(rarity(joined), layout)),
            float(np.log10(valley.smear(curves[1], 0.15))),
        )  # fmt: skip
        yield dict(zip(MEANINGS, values, strict=True))


def _readings(alphabet: str, runs: list[list[dict[str, float]]], marks: list[int]) -> Iterator[Reading]:
    for k, step in enumerate(marks):
        for name in list(MEANINGS)[:-1]:
            yield over_networks(f"{name} at step {step}, {alphabet}", [run[k][name] for run in runs],
                                f"{MEANINGS[name]}; mean over runs")  # fmt: skip
    name = "smear 15%"
    yield over_networks(f"change of {name}, {alphabet}", [run[-1][name] - run[0][name] for run in runs],
                        f"log10 from first to last step: {MEANINGS[name].removeprefix('log10 of ')}")  # fmt: skip


def _mean(runs: list[list[dict[str, float]]], mark: int) -> tuple[float, float]:
    """What order is worth and the smear at one mark, over runs."""
    return (float(np.mean([run[mark]["nats from order"] for run in runs])),
            float(np.mean([run[mark]["smear 15%"] for run in runs])))  # fmt: skip


STUDIES.register("order-learned", order_learned)
