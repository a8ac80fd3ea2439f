"""Black boxes: a callable, and a real server on this machine that fails half its calls."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from catenary.errors import InvalidInput
from catenary.retrieval.boxes.calls import BoxScorer, Callback
from catenary.retrieval.boxes.endpoint import KEY, Endpoint
from catenary.retrieval.boxes.retry import Passing, Retry
from catenary.retrieval.records import outcomes_record
from catenary.retrieval.tasks import load_task
from catenary.study.retrieve import score_samples

SECRET = "sk-very-secret"


class Server:
    """Answers like OpenAI's; ``plan(number, body)`` may give another (status, headers, body) for a call."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.keys: set[str] = set()
        self.plan: Any = lambda number, body: None
        self.lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with owner.lock:
                    owner.calls.append(body)
                    owner.paths.append(self.path)
                    owner.keys.add(self.headers.get("Authorization", ""))
                    number = len(owner.calls)
                status, headers, reply = owner.plan(number, body) or (200, {}, answer(body))
                raw = json.dumps(reply).encode()
                self.send_response(status)
                headers = {**headers, "Content-Type": "application/json", "Content-Length": str(len(raw))}
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


def prompt_of(body: dict[str, Any]) -> str:
    return str(body["messages"][0]["content"] if "messages" in body else body["prompt"])


def looked_up(prompt: str) -> str:
    """Right where the key's pair is among the first two, else no answer at all."""
    key = prompt.rsplit('Key: "', 1)[1].split('"')[0]
    lines = [line for line in prompt.splitlines() if '": "' in line and not line.startswith("Key")]
    at = next(n for n, line in enumerate(lines) if f'"{key}"' in line)
    return lines[at].split('": "')[1].split('"')[0] if at < 2 else ""


def answer(body: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    text = looked_up(prompt_of(body))
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish, "logprobs": None}
    if "messages" in body:
        choice["message"] = {"role": "assistant", "content": text}
    else:
        choice["text"] = text
    usage = {"prompt_tokens": 12, "completion_tokens": 1, "total_tokens": 13}
    return {"id": "x", "object": "x", "created": 0, "model": body["model"], "choices": [choice], "usage": usage}


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def task(count: int = 3) -> Any:
    return load_task("key-value", pairs=4, prefix=8, count=count)


def endpoint(server: Server, waits: list[float] | None = None, **given: Any) -> BoxScorer:
    retry = Retry(attempts=given.pop("attempts", 6), sleep=(waits if waits is not None else []).append)
    return BoxScorer(Endpoint(server.url, "some-model", retry=retry, **given))


@pytest.mark.parametrize("chat", [True, False])
def test_half_the_calls_fail_and_nothing_is_lost(server: Server, tmp_path: Path, chat: bool) -> None:
    statuses = (500, 429, 503, 408)
    failed = iter(range(10**6))
    server.plan = lambda number, body: (statuses[next(failed) % 4], {}, {"error": "busy"}) if number % 2 else None
    waits: list[float] = []
    found = score_samples(task(), endpoint(server, waits, chat=chat, at_once=1), tmp_path, samples=3)
    assert found.outcomes.values["exact"].tolist() == [[1, 1, 0, 0]] * 3
    assert set(found.outcomes.values) == {"exact", "contains", "best_subspan"}
    assert len(server.calls) == 2 * (3 * 4 + 3)
    assert len(waits) == 15
    assert set(server.paths) == {"/v1/chat/completions" if chat else "/v1/completions"}
    assert found.rates.empty.tolist() == [0, 0, 1, 1]
    assert server.calls[0]["temperature"] == 0
    assert len(list((tmp_path / "units").iterdir())) == 3


def test_an_endpoint_that_dies_is_resumed_where_it_stopped(server: Server, tmp_path: Path) -> None:
    whole = score_samples(task(), endpoint(server), None, samples=3).outcomes
    per_sample = len(server.calls) // 3
    server.calls.clear()
    server.plan = lambda number, body: (500, {}, {"error": "gone"}) if number > per_sample + 2 else None
    with pytest.raises(InvalidInput, match=r"failed 2 times.*500"):
        score_samples(task(), endpoint(server, attempts=2, at_once=1), tmp_path, samples=3)
    (kept,) = (tmp_path / "units").iterdir()
    before = kept.read_bytes()
    server.plan = lambda number, body: None
    server.calls.clear()
    again = score_samples(task(), endpoint(server), tmp_path, samples=3).outcomes
    assert len(server.calls) == 2 * per_sample
    assert kept.read_bytes() == before
    assert outcomes_record(again) == outcomes_record(whole)


def test_what_the_server_says_decides(server: Server) -> None:
    scorer = endpoint(server, waits := [])
    long = {"error": {"message": "maximum context length is 8"}}
    server.plan = lambda number, body: (400, {}, long) if "01" in prompt_of(body) else None
    fine, refused = scorer.score([task().case(0, 0), _with_text("01")])
    assert (fine.text, fine.ended, fine.tokens) == (task().case(0, 0).answers[0], True, 12)
    assert "400" in refused.skipped
    assert "maximum context length is 8" in refused.skipped
    server.plan = lambda number, body: (200, {}, answer(body, "length"))
    assert not scorer.score([task().case(0, 0)])[0].ended
    server.plan = lambda number, body: (401, {}, {"error": {"message": "bad key"}})
    with pytest.raises(InvalidInput, match=f"401.*bad key.*{KEY}"):
        scorer.score([task().case(0, 0)])
    assert waits == []
    asked = ({"Retry-After": "7"}, {"Retry-After": "soon"})
    turns = iter([*((429, headers, {}) for headers in asked), (200, {}, {"choices": []}), None])
    server.plan = lambda number, body: next(turns)
    assert scorer.score([task().case(0, 0)])[0].text
    assert waits == [7.0, 1.0, 2.0]


def _with_text(text: str) -> Any:
    from catenary.retrieval.case import Case, Segment

    return Case("s", (Segment(text, 0),), ("x",), 0)


def test_nobody_listens(server: Server) -> None:
    url = server.url
    server.http.server_close()
    waits: list[float] = []
    scorer = BoxScorer(Endpoint(url, "m", retry=Retry(attempts=3, sleep=waits.append), timeout=2))
    server.http.shutdown()
    with pytest.raises(InvalidInput, match="failed 3 times"):
        scorer.score([task().case(0, 0)])
    assert waits == [0.5, 1.0]


def test_the_key_comes_from_the_environment_and_is_never_kept(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, SECRET)
    url = server.url.replace("http://", f"http://me:{SECRET}@") + f"?key={SECRET}"
    scorer = BoxScorer(Endpoint(url, "m", retry=Retry(attempts=1)))
    assert scorer.record()["box"]["url"] == server.url
    found = score_samples(task(1), endpoint(server), tmp_path, samples=1)
    assert server.keys == {f"Bearer {SECRET}"}
    texts = [path.read_text() for path in tmp_path.rglob("*.json")]
    assert SECRET not in "".join([*texts, json.dumps(outcomes_record(found.outcomes)), json.dumps(scorer.identity())])


def test_a_callable(tmp_path: Path) -> None:
    seen: list[int] = []

    def generate(prompts: Sequence[str]) -> list[str]:
        seen.append(len(prompts))
        if len(seen) % 2:
            raise ConnectionError("busy")
        return [looked_up(prompt) for prompt in prompts]

    box = BoxScorer(Callback(generate, "mine", Retry(sleep=lambda seconds: None)))
    found = score_samples(task(), box, tmp_path, samples=2)
    assert found.outcomes.values["contains"].tolist() == [[1, 1, 0, 0]] * 2
    assert seen == [5] * 4  # four slots and the oracle, twice a sample
    assert found.outcomes.provenance["scorer"]["box"] == {"kind": "callable", "name": "mine"}
    assert found.outcomes.baselines["oracle"]["exact"].tolist() == [1, 1]
    for wrong, said in (("text", "one text"), (["a"], "1 of str"), ([1] * 5, "5 of int")):
        bad = BoxScorer(Callback(lambda prompts, wrong=wrong: wrong, "bad"))  # type: ignore[misc]
        with pytest.raises(InvalidInput, match=said):
            score_samples(task(), bad, samples=1)
    with pytest.raises(InvalidInput, match="'logp' only for a network"):
        score_samples(task(), box, samples=1, metric="logp", resolve=0.1)


def test_retry() -> None:
    waits: list[float] = []
    retry = Retry(attempts=10, first=1, longest=20, sleep=waits.append)

    def never() -> None:
        raise Passing("busy")

    with pytest.raises(InvalidInput, match="failed 10 times, the last one with: busy"):
        retry(never)
    assert waits == [1, 2, 4, 8, 16, 20, 20, 20, 20]
    with pytest.raises(KeyError):
        retry(lambda: {}["x"])
    with pytest.raises(InvalidInput, match="attempts"):
        Retry(attempts=0)


def test_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="http or https"):
        Endpoint("localhost:80", "m")
    with pytest.raises(InvalidInput, match="endpoint_model"):
        Endpoint("http://localhost", "")
    with pytest.raises(InvalidInput, match="at_once"):
        Endpoint("http://localhost", "m", at_once=0)
    import sys

    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(InvalidInput, match="endpoint"):
        Endpoint("http://localhost", "m")
