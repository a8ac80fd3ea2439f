"""Scoring one sample at all positions: a shared prefix cache against two plain ways, in processor seconds.

All give every position's answer log-probability and greedy generation, and must agree. ``independent`` is two calls per
position: ``model(...)`` with logits at every token, and ``model.generate``. ``one prefill each`` is the fairer
alternative: a single pass over each prompt, with logits at its last token, from whose cache both continue.

    python benchmarks/retrieve.py .cache/demo/smollm2-135m
    python benchmarks/retrieve.py            (an untrained network of the same size)
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from clock import clock

import catenary as ct
from catenary.retrieval.scoring.alone import generate_alone
from catenary.retrieval.scoring.cached import score_cached
from catenary.retrieval.scoring.encode import Encoder
from catenary.retrieval.scoring.ending import Ending, end_tokens
from catenary.retrieval.scoring.network import _query
from catenary.retrieval.scoring.query import Query, Reply
from catenary.retrieval.scoring.tree import tokens_run
from catenary.retrieval.tasks import load_task
from catenary.study.retrieve import chosen_slots

DEMO = Path(".cache/demo/smollm2-135m")


def full_logits(module: torch.nn.Module, query: Query) -> float:
    """The answer's log-probability as one writes it first: logits of all tokens, a softmax over the answer's."""
    ids = torch.tensor([[*query.prompt.tolist(), *query.answer.tolist()]])
    with torch.no_grad():
        logits = module(ids).logits[0]
    size = len(query.prompt)
    logs = logits[size - 1 : -1].double().log_softmax(-1)
    return float(logs.gather(1, ids[0, size:, None]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default=str(DEMO) if DEMO.is_dir() else "smollm2-135m")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--positions", type=int, default=10)
    parser.add_argument("--new-tokens", type=int, default=24)
    options = parser.parse_args()
    weights = "pretrained" if Path(options.model).is_dir() else "untrained"
    model = ct.load(options.model, weights=weights)
    tokenizer = model.tokenizer()
    task = load_task("key-value", pairs=options.pairs, prefix=13, count=1)
    encoder = Encoder(tokenizer)
    queries = [_query(encoder.encode(task.case(0, slot))) for slot in chosen_slots(task.slots, options.positions)]
    ending = Ending(tokenizer, end_tokens(model.module, tokenizer), options.new_tokens, True)
    found: dict[str, list[Reply]] = {}

    def independent() -> None:
        found["independent"] = [
            Reply(full_logits(model.module, query), *generate_alone(model.module, query, ending)) for query in queries
        ]

    def each() -> None:
        found["one prefill each"] = [score_cached(model.module, [query], ending)[0] for query in queries]

    def shared() -> None:
        found["shared"] = score_cached(model.module, queries, ending)

    score_cached(model.module, [Query(queries[0].prompt[:8], queries[0].answer[:2])], ending)
    seconds = {"shared": clock(shared), "one prefill each": clock(each), "independent": clock(independent)}
    difference = max(
        abs(a.logp - b.logp) for name in found for a, b in zip(found[name], found["shared"], strict=True)
    )
    same = all([a.text for a in found[name]] == [b.text for b in found["shared"]] for name in found)
    prompts = [query.prompt for query in queries]
    print(json.dumps({
        "model": model.label,
        "tokens": sum(map(len, prompts)),
        "tokens_run": tokens_run(prompts),
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
        "ratio_to_independent": round(seconds["independent"] / seconds["shared"], 2),
        "ratio_to_one_prefill_each": round(seconds["one prefill each"] / seconds["shared"], 2),
        "largest_difference": difference,
        "same_generations": same,
    }))


if __name__ == "__main__":
    main()
