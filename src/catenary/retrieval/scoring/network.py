"""NetworkScorer: cases of one sample through a network, by a shared cache where its own check allows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from catenary.errors import InvalidInput, invalid, unknown
from catenary.models.extra import torch
from catenary.models.model import Model
from catenary.models.rope import changes_with_length
from catenary.provenance import versions
from catenary.retrieval.case import Case
from catenary.retrieval.scoring.alone import logp_alone, score_alone
from catenary.retrieval.scoring.cached import score_cached
from catenary.retrieval.scoring.encode import Encoded, Encoder
from catenary.retrieval.scoring.ending import Ending, end_tokens
from catenary.retrieval.scoring.forward import Unforkable
from catenary.retrieval.scoring.query import Query
from catenary.retrieval.scoring.scored import Scored
from catenary.retrieval.scoring.tree import turns
from catenary.text.tokenise import Bos

Route = Literal["cached", "alone"]

ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.03}
"""Largest difference between both routes that is rounding, nats per token. Measured: below 1e-6 in float32 on small
networks, up to .021 in bfloat16 on SmolLM2-135M; a wrong mask or position changes whole tenths."""

_FAULTS = (RuntimeError, AttributeError, TypeError, ValueError, IndexError, KeyError, NotImplementedError)


class NetworkScorer:
    """Scores with a network of transformers that is held in memory."""

    has_logp = True

    def __init__(
        self, model: Model, tokenizer: Any, *, bos: Bos = "tokenizer", chat: bool = False,
        max_length: int | None = None, max_new_tokens: int = 40, route: Route | None = None,
    ) -> None:  # fmt: skip
        """Prepare a network.

        Args:
            model: from ``load`` or ``adopt``.
            tokenizer: of the model.
            bos: as in ``Encoder``.
            chat: as in ``Encoder``.
            max_length: most tokens of prompt and answer together; at most, and by default, what the config names.
                A longer prompt is skipped, never cut.
            max_new_tokens: where a generation that has not ended is truncated.
            route: how prompts are scored; by default ``settle`` decides.

        Raises:
            InvalidInput: sizes below 1, unknown words, and what ``Encoder`` refuses.
        """
        for name, value in (("max_length", max_length), ("max_new_tokens", max_new_tokens)):
            if value is not None and value < 1:
                raise invalid(name, "must be at least 1", value)
        if route not in (None, "cached", "alone"):
            raise unknown("route", str(route), ("cached", "alone"))
        self.model = model
        self.encoder = Encoder(tokenizer, bos=bos, chat=chat)
        self.ending = Ending(tokenizer, end_tokens(model.module, tokenizer), max_new_tokens, not self.encoder.chat)
        limits = [limit for limit in (max_length, model.max_length) if limit is not None]
        self.max_length = min(limits) if limits else None
        self.route: Route | None = route
        self.why = "as asked" if route else ""

    def settle(self, cases: Sequence[Case]) -> None:
        """Decide how prompts are scored, on the cases of one sample; nothing to do where that was asked for."""
        if self.route is None:
            encoded = [self._encode(case) for case in cases]
            self.route, self.why = self.check([_query(one) for one in encoded if isinstance(one, Encoded)])

    def score(self, cases: Sequence[Case]) -> list[Scored]:
        """One result for each case."""
        self.settle(cases)
        encoded = [self._encode(case) for case in cases]
        fitting = [(n, one) for n, one in enumerate(encoded) if isinstance(one, Encoded)]
        queries = [_query(one) for _, one in fitting]
        results = [one if isinstance(one, Scored) else Scored() for one in encoded]
        if not queries:
            return results
        run = score_cached if self.route == "cached" else score_alone
        for (n, one), reply in zip(fitting, run(self.model.module, queries, self.ending), strict=True):
            results[n] = Scored(
                "", reply.text, reply.ended, reply.logp, len(one.prompt), len(one.answer), one.apart
            )
        return results

    def check(self, queries: Sequence[Query]) -> tuple[Route, str]:
        """The route to take, and why: the prompt that shares most with another, scored both ways."""
        order = turns([query.prompt for query in queries])
        if len(order) < 2:
            return "alone", "nothing to share"
        at = max(range(1, len(order)), key=lambda k: order[k].shared)
        before, last = queries[order[at - 1].rows[0]], queries[order[at].rows[0]]
        module = self.model.module
        if changes_with_length(module):
            return "alone", "its rotary frequencies (longrope) change with the length of the sequence"
        try:
            shared = score_cached(module, [before, last], replace(self.ending, limit=1))[1].logp
        except Unforkable as fault:
            return "alone", f"{fault}"
        except torch.OutOfMemoryError:
            raise
        except _FAULTS as fault:
            words = " ".join(f"{type(fault).__name__}: {fault}".split())[:160]
            return "alone", f"{type(module).__name__} cannot continue a shared cache ({words})"
        difference = abs(shared - logp_alone(module, last))
        limit = ROUNDING.get(self.model.dtype, 1e-3)
        if not difference <= limit:
            return "alone", f"with a shared cache a log-probability differs by {difference:.2g} nats per token"
        return "cached", f"checked on the first sample: equal within {limit:g} nats per token"

    def identity(self) -> dict[str, Any]:
        """Network, tokenizer, limits, device, versions, and the route once it is settled."""
        kept = ("fingerprint", "dtype", "device", "attention", "rope")
        network = {name: value for name, value in self.model.provenance().items() if name in kept}
        return {
            "network": network, "encoder": self.encoder.record(), "ending": self.ending.record(),
            "max_length": self.max_length, "versions": versions(), "route": self.route,
        }  # fmt: skip

    def record(self) -> dict[str, Any]:
        """The network's provenance and how prompts were scored."""
        return {
            "model": self.model.provenance(), "encoder": self.encoder.record(), "ending": self.ending.record(),
            "max_length": self.max_length, "versions": versions(), "route": self.route, "route_reason": self.why,
        }  # fmt: skip

    def _encode(self, case: Case) -> Encoded | Scored:
        try:
            one = self.encoder.encode(case)
        except InvalidInput as reason:
            return Scored(skipped=str(reason))
        size, room = len(one.prompt), one.unscored + max(len(one.answer), self.ending.limit)
        if self.max_length is not None and size + room > self.max_length:
            words = f"{size} tokens and {room} for the answer are more than the {self.max_length} that fit"
            return Scored(skipped=words, tokens=size)
        if size == 0:
            return Scored(skipped="the prompt has no token")
        return one


def _query(one: Encoded) -> Query:
    """The prompt with the lead's own tokens, and the answer: both routes read and generate from there."""
    return Query(np.concatenate([one.prompt, one.continuation[: one.unscored]]), one.answer)
