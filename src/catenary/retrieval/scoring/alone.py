"""Scoring each prompt by itself: one pass for the answer's log-probability, one greedy generation.

The plain way, for networks whose state cannot be shared between prompts, and to check the shared way against.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from catenary.models.extra import torch, transformers
from catenary.retrieval.scoring.ending import Ending
from catenary.retrieval.scoring.forward import Forward
from catenary.retrieval.scoring.query import Query, Reply


def score_alone(module: torch.nn.Module, queries: Sequence[Query], ending: Ending) -> list[Reply]:
    """Reply to every query, one after the other."""
    return [Reply(logp_alone(module, query), *generate_alone(module, query, ending)) for query in queries]


def logp_alone(module: torch.nn.Module, query: Query) -> float:
    """Mean over the answer's tokens of log p(token | everything before it), nats, from one pass over all tokens."""
    whole = np.concatenate([query.prompt, query.answer])
    device = next(module.parameters()).device
    with torch.no_grad():
        logits = Forward(module)(torch.from_numpy(whole[None, :-1]).to(device), keep=len(query.answer))
        logs = logits[0].double().log_softmax(-1)
    wanted = torch.from_numpy(query.answer).to(device)
    return float(logs.gather(1, wanted[:, None]).mean())


def generate_alone(module: torch.nn.Module, query: Query, ending: Ending) -> tuple[str, bool]:
    """The greedy generation by the network's own ``generate``, and whether it ended."""
    device = next(module.parameters()).device
    size = len(query.prompt)

    def over(ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        return torch.tensor([ending.over(ids[0, size:].tolist())], device=ids.device)

    with torch.no_grad(), _greedy(module, ending):
        prompt = torch.from_numpy(query.prompt[None]).to(device)
        made = module.generate(  # type: ignore[operator]  # of transformers' mixin, which torch's stubs do not know
            input_ids=prompt, attention_mask=torch.ones_like(prompt), stopping_criteria=[over]
        )
    new = made[0, size:].tolist()
    return ending.text(new), ending.over(new)


@contextmanager
def _greedy(module: Any, ending: Ending) -> Iterator[None]:
    """The network generates greedily and nothing else, whatever its own generation config asks for."""
    own = module.generation_config
    ends = sorted(ending.ends) or None
    module.generation_config = transformers().GenerationConfig(
        do_sample=False, num_beams=1, max_new_tokens=ending.limit, eos_token_id=ends,
        pad_token_id=ends[0] if ends else 0,
    )  # fmt: skip
    try:
        yield
    finally:
        module.generation_config = own
