"""Endpoint: a server that speaks OpenAI's protocol, through its official client (extra ``endpoint``)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from catenary.errors import InvalidInput, MissingResource, invalid
from catenary.retrieval.boxes.retry import Passing, Retry
from catenary.retrieval.scoring.scored import Scored

KEY = "OPENAI_API_KEY"
"""The environment variable that holds the key; servers of one's own mostly need none."""

REFUSED = (400, 413, 422)
"""Status codes of one prompt refused, a context too long among them; the reason is kept with the prompt."""

PASSING = (408, 409, 425, 429)
"""Status codes that may pass, beside 500 and above."""


class Endpoint:
    """Answers by chat completion, or with ``chat=False`` by plain completion, at temperature 0."""

    def __init__(
        self, url: str, model: str, *, chat: bool = True, max_new_tokens: int = 40, at_once: int = 4,
        timeout: float = 300.0, retry: Retry | None = None,
    ) -> None:  # fmt: skip
        """Connect to nothing yet.

        Args:
            url: base address, such as ``http://localhost:8000/v1``.
            model: name that the server knows it by.
            chat: whether prompts go as one user turn.
            max_new_tokens: where the server truncates an answer.
            at_once: calls in flight.
            timeout: seconds of one call.
            retry: how failed calls are made again.

        Raises:
            MissingResource: the client is not installed.
            InvalidInput: an address that is none, sizes below 1, no model.
        """
        try:
            import openai
        except ModuleNotFoundError as absent:
            words = 'the client is not installed; endpoints need the extra: pip install "catenary[endpoint]"'
            raise MissingResource(words) from absent
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise invalid("endpoint", "must be an http or https address", _public(url))
        if not model:
            raise invalid("endpoint_model", "must name the server's model", model)
        for name, value in (("max_new_tokens", max_new_tokens), ("at_once", at_once)):
            if value < 1:
                raise invalid(name, "must be at least 1", value)
        self._openai = openai
        key = os.environ.get(KEY) or "none"
        self._client = openai.OpenAI(base_url=url, api_key=key, max_retries=0, timeout=timeout)
        self.url, self.model, self.chat = _public(url), model, chat
        self.max_new_tokens, self.at_once, self._retry = max_new_tokens, at_once, retry or Retry()

    def answer(self, prompts: Sequence[str]) -> list[Scored]:
        """One result for each prompt, in order; a prompt that the server refuses is skipped with its words.

        Raises:
            InvalidInput: a call that fails at every attempt, a wrong key, an unknown model.
        """
        with ThreadPoolExecutor(self.at_once) as pool:
            return list(pool.map(lambda prompt: self._retry(lambda: self._one(prompt)), prompts))

    def record(self) -> Mapping[str, Any]:
        """Address without secrets, model, and how it is asked."""
        return {
            "kind": "endpoint", "url": self.url, "model": self.model, "chat": self.chat, "temperature": 0,
            "max_new_tokens": self.max_new_tokens, "client": self._openai.__version__,
        }  # fmt: skip

    def _one(self, prompt: str) -> Scored:
        openai = self._openai
        try:
            return self._ask(prompt)
        except openai.APIStatusError as failure:
            code, words = failure.status_code, _words(failure)
            if code in REFUSED:
                return Scored(skipped=f"refused by the endpoint ({code}): {words}")
            if code in PASSING or code >= 500:
                raise Passing(f"{code} {words}", _asked_wait(failure)) from failure
            hint = f"see {KEY} and --endpoint-model"
            raise InvalidInput(f"endpoint {self.url} answers {code}: {words}; {hint}") from failure
        except openai.APIConnectionError as failure:  # time-outs are among them
            raise Passing(f"{self.url}: {_words(failure)}") from failure
        except openai.APIError as failure:  # an answer that is not what the protocol says
            raise Passing(f"{self.url}: {_words(failure)}") from failure

    def _ask(self, prompt: str) -> Scored:
        common: dict[str, Any] = {"model": self.model, "max_tokens": self.max_new_tokens, "temperature": 0}
        if self.chat:
            reply: Any = self._client.chat.completions.create(messages=[{"role": "user", "content": prompt}], **common)
        else:
            reply = self._client.completions.create(prompt=prompt, **common)
        choices = getattr(reply, "choices", None)
        if not choices:
            raise Passing(f"{self.url}: a reply without an answer")
        text = choices[0].message.content if self.chat else choices[0].text
        usage = getattr(reply, "usage", None)
        tokens = int(getattr(usage, "prompt_tokens", 0) or 0)
        return Scored(text=text or "", ended=choices[0].finish_reason != "length", tokens=tokens)


def _public(url: str) -> str:
    """The address without a name, password or query in it."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return urlunsplit((parts.scheme, host + port, parts.path, "", ""))


def _words(failure: Exception) -> str:
    return " ".join(str(failure).split())[:200]


def _asked_wait(failure: Any) -> float | None:
    """Seconds that the reply's ``Retry-After`` asks for, if it holds a number."""
    given = failure.response.headers.get("retry-after", "")
    try:
        return max(0.0, float(given))
    except ValueError:
        return None
