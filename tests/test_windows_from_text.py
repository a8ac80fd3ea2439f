"""Windows of documents: which tokens, from which documents, where the boundaries are, and what was passed over."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import catenary.text.candidates as candidates
from catenary.errors import InvalidInput
from catenary.text import Document, Windows, chunked_windows, default_chunk, read_documents, vanilla_windows
from small_tokenizers import byte_tokenizer, word_tokenizer

WORDS = word_tokenizer(3000)
WITH_BOS = word_tokenizer(3000, template="<s> $A")
BOS = 1


def corpus(sizes: list[int]) -> list[Document]:
    """Document d has the words w(100 d), w(100 d + 1), ...: a token tells its document and its place in it."""
    return [
        Document(" ".join(f"w{100 * d + n}" for n in range(size)), f"document {d}", "made here")
        for d, size in enumerate(sizes)
    ]


def check_counts(windows: Windows, found: int) -> None:
    counts = windows.report["documents"]
    assert counts["found"] == found == counts["used"] + counts["unused"] + sum(counts["skipped"].values())


def check_sources(windows: Windows, documents: list[Document], tokenizer: Any, front: int) -> None:
    """Tokenising the characters a piece names gives the ids at the positions it names (C12)."""
    texts = {document.name: document.text for document in documents}
    for ids, source in zip(windows.ids, windows.sources, strict=True):
        edges = [edge for piece in source["pieces"] for edge in piece["positions"]]
        assert edges[0] == front
        assert edges[-1] == windows.length
        assert edges[1:-1:2] == edges[2::2]
        for piece in source["pieces"]:
            text = texts[piece["document"]]
            first, past = piece["characters"]
            tokens = ids[slice(*piece["positions"])].tolist()
            assert tokenizer(text[first:past], add_special_tokens=False).input_ids == tokens
            assert piece["fraction"] == [first / len(text), past / len(text)]
            whole = tokenizer(text, add_special_tokens=False).input_ids
            assert whole[slice(*piece["tokens"])] == tokens
    json.dumps([windows.report, windows.sources])


@pytest.mark.parametrize(
    ("tokenizer", "bos", "front"),
    [(WORDS, "tokenizer", 0), (WITH_BOS, "tokenizer", 1), (WITH_BOS, "none", 0), (WORDS, "one", 1)],
)
def test_vanilla_windows_are_the_beginnings_of_different_documents(tokenizer: Any, bos: Any, front: int) -> None:
    documents = corpus([50, 10, 31, 80, 32, 90])
    windows = vanilla_windows(documents, tokenizer, length=32, count=3, seed=4, bos=bos)
    assert windows.kind == "vanilla"
    assert windows.ids.shape == (3, 32)
    assert (windows.ids == BOS).sum(axis=1).tolist() == [front] * 3
    starts = windows.ids[:, front] - WORDS.convert_tokens_to_ids("w0")
    assert (starts % 100 == 0).all()
    assert len(set(starts.tolist())) == 3
    assert windows.report["bos"]["policy"] == bos
    assert windows.report["bos"]["bos"] == front
    check_counts(windows, 6)
    check_sources(windows, documents, WORDS, front)


def test_bos_takes_one_place_of_the_length() -> None:
    documents = corpus([31])
    assert vanilla_windows(documents, WITH_BOS, length=32, count=1, seed=0).ids.shape == (1, 32)
    with pytest.raises(InvalidInput, match="1 texts of at least 32 tokens, got 0 of 1"):
        vanilla_windows(documents, WORDS, length=32, count=1, seed=0)


@pytest.mark.parametrize("length", [64, 70, 65])
@pytest.mark.parametrize(("tokenizer", "front"), [(WORDS, 0), (WITH_BOS, 1)])
def test_chunks_join_different_documents_at_fixed_boundaries(length: int, tokenizer: Any, front: int) -> None:
    documents = corpus([100] * 25)
    windows = chunked_windows(documents, tokenizer, length=length, count=4, seed=1, chunk=16)
    boundaries = list(range(16, length, 16))
    assert windows.report["boundaries"] == boundaries
    assert windows.report["last_chunk"] == length - boundaries[-1]
    assert windows.report["reused"] == 0
    words = windows.ids[:, front:] - WORDS.convert_tokens_to_ids("w0")
    breaks = np.diff(words, axis=1) != 1  # inside a document each word follows the last
    # A random start can by chance continue the previous document's last word; these draws have no such case.
    assert all((np.flatnonzero(row) + front + 1).tolist() == boundaries for row in breaks)
    pieces = np.split(words // 100, [b - front for b in boundaries], axis=1)
    owners = np.stack([piece[:, 0] for piece in pieces], axis=1)
    assert len(set(owners.ravel().tolist())) == owners.size  # every excerpt from a document of its own
    starts = np.array([piece["tokens"][0] for source in windows.sources for piece in source["pieces"]])
    assert len(set(starts.tolist())) > 10
    assert starts.max() <= 100 - 16
    assert (windows.ids == BOS).sum() == 4 * front
    check_counts(windows, 25)
    check_sources(windows, documents, WORDS, front)


def test_excerpt_starts_are_uniform_over_the_document() -> None:
    documents = corpus([20] * 25)
    starts = [
        piece["tokens"][0]
        for seed in range(40)
        for source in chunked_windows(documents, WORDS, length=32, count=10, seed=seed, chunk=16).sources
        for piece in source["pieces"]
    ]
    counts = np.bincount(starts, minlength=5)
    assert len(counts) == 5  # starts 0..4 are all that 16 of 20 tokens can have
    expected = len(starts) / 5
    assert ((counts - expected) ** 2 / expected).sum() < 18.5  # chi-squared with 4 degrees of freedom, p = .001


def test_documents_are_used_again_only_when_all_were_used_and_never_twice_in_a_window() -> None:
    documents = corpus([90] * 5)
    windows = chunked_windows(documents, WORDS, length=64, count=6, seed=0, chunk=16)
    assert windows.report["reused"] == 6 * 4 - 5
    assert windows.report["documents"]["used"] == 5
    for source in windows.sources:
        assert len({piece["document"] for piece in source["pieces"]}) == 4
    excerpts = [(p["document"], p["tokens"][0]) for s in windows.sources for p in s["pieces"]]
    assert len(set(excerpts)) > 20
    with pytest.raises(InvalidInput, match="4 texts of at least 16 tokens, got 3 of 3"):
        chunked_windows(documents[:3], WORDS, length=64, count=1, seed=0, chunk=16)
    with pytest.raises(InvalidInput, match=r"10 texts .* 16 tokens, got 5 of 5 .*80 give every excerpt its own"):
        chunked_windows(documents, WORDS, length=64, count=20, seed=0, chunk=16)


def test_default_chunk() -> None:
    assert [default_chunk(length) for length in (64, 128, 1024, 1025, 4096)] == [32, 64, 64, 300, 300]
    long = [Document(" ".join(["w1"] * 70), f"{n}", "") for n in range(2)]
    long = [Document(f"w{n} {d.text}", d.name, "") for n, d in enumerate(long)]
    assert chunked_windows(long, WORDS, length=128, count=1, seed=0).report["chunk"] == 64


@pytest.mark.parametrize("build", [vanilla_windows, chunked_windows])
def test_a_seed_fixes_everything_and_another_seed_changes_it(build: Callable[..., Windows]) -> None:
    documents = corpus([100] * 25)
    first, same, other = (build(documents, WORDS, length=80, count=5, seed=seed) for seed in (3, 3, 4))
    assert (first.ids == same.ids).all()
    assert first.report == same.report
    assert first.sources == same.sources
    assert (first.ids != other.ids).any()


def test_short_repeated_and_broken_documents_are_counted() -> None:
    documents = corpus([40, 12, 40, 40])
    documents += [Document(text, "", "") for text in (documents[0].text, "tiny", "\ud800" * 99)]
    windows = vanilla_windows(documents, WORDS, length=16, count=3, seed=0)
    check_counts(windows, 7)
    with pytest.raises(InvalidInput) as caught:
        vanilla_windows(documents, WORDS, length=16, count=4, seed=0)
    message = str(caught.value)
    assert "4 texts of at least 16 tokens, got 3 of 7 found" in message
    for part in ("2 shorter than 16 tokens", "1 begins as another one does", "1 not UTF-8", "smaller length or count"):
        assert part in message
    chunked = chunked_windows(documents, WORDS, length=24, count=1, seed=0, chunk=10)
    check_counts(chunked, 7)


def test_what_the_reader_passes_over_is_in_the_report(tmp_path: Path) -> None:
    lines = ["broken", *(json.dumps({"text": d.text}) for d in corpus([30] * 4))]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    (tmp_path / "b.png").write_text("x")
    for source in (tmp_path, str(tmp_path), read_documents(tmp_path)):
        windows = vanilla_windows(source, WORDS, length=8, count=2, seed=0)
        assert windows.report["documents"] == {
            "found": 6, "used": 2, "unused": 2, "source_read_to_its_end": True,
            "skipped": {"line is not JSON": 1, "not a text file, by its suffix": 1},
        }
    with pytest.raises(InvalidInput, match=r"got 0 of 6 found"):
        vanilla_windows(tmp_path, WORDS, length=31, count=1, seed=0)


def test_a_stream_is_read_only_as_far_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "POOL_DOCUMENTS", 10)
    given = []

    def stream() -> Iterator[Document]:
        for document in corpus([5] * 12 + [50] * 100):
            given.append(document.name)
            yield document

    windows = vanilla_windows(stream(), WORDS, length=32, count=12, seed=0)
    assert len(given) == 30  # pools of 10: 0 long enough, then 8, then the 4 missing
    assert windows.report["documents"]["source_read_to_its_end"] is False
    check_counts(windows, 30)
    names = [source["pieces"][0]["document"] for source in windows.sources]
    assert {int(name.split()[1]) for name in names[:8]} == set(range(12, 20))
    assert names[:8] != sorted(names[:8])


def test_a_pool_is_bounded_in_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "POOL_CHARACTERS", 1000)
    given = []

    def stream() -> Iterator[str]:
        for document in corpus([90] * 20):
            given.append(document.text)
            yield document.text

    vanilla_windows(stream(), WORDS, length=32, count=1, seed=0)
    assert sum(map(len, given[:-1])) < 1000 <= sum(map(len, given))


@pytest.mark.parametrize("build", [vanilla_windows, chunked_windows])
def test_a_request_that_makes_no_sense_is_refused(build: Callable[..., Windows]) -> None:
    good: dict[str, Any] = {"length": 32, "count": 1, "seed": 0}
    for name, value in (("length", 1), ("count", 0), ("seed", -1)):
        with pytest.raises(InvalidInput, match=f"{name} must be >= "):
            build([], WORDS, **{**good, name: value})
    with pytest.raises(InvalidInput, match="unknown bos"):
        build([], WORDS, **good, bos="two")
    with pytest.raises(InvalidInput, match=r"got 0 of 0 found \(passed over: none\)"):
        build([], WORDS, **{**good, "length": 100})


def test_a_chunk_must_leave_room_and_be_shorter_than_the_window() -> None:
    for chunk in (0, 32, 100):
        with pytest.raises(InvalidInput, match="chunk must be > 0"):
            chunked_windows([], WORDS, length=32, count=1, seed=0, chunk=chunk)
    with pytest.raises(InvalidInput, match="chunk must be > 1"):
        chunked_windows([], WITH_BOS, length=32, count=1, seed=0, chunk=1)


def test_hostile_text_gives_ordinary_windows() -> None:
    tokenizer = byte_tokenizer(template="<s> $A")
    text = "null \x00 bell \x07 line\u2028 </script><script>alert('\"')</script> <s><s> é🙂 "
    documents = [Document(f"{n} {text * 3}", "<script>", "\u2028") for n in range(8)]
    plain = vanilla_windows(documents, tokenizer, length=100, count=8, seed=0)
    mixed = chunked_windows(documents, tokenizer, length=100, count=2, seed=0, chunk=30)
    for windows in (plain, mixed):
        assert ((windows.ids == BOS).sum(axis=1) == 1).all()
        assert (windows.ids[:, 0] == BOS).all()
    first, past = plain.sources[0]["pieces"][0]["characters"]
    chosen = next(d for d in documents if d.text[0].encode() == tokenizer.decode(plain.ids[0, 1:2]).encode())
    assert tokenizer.decode(plain.ids[0, 1:]).startswith(chosen.text[first : past - 1])


@pytest.mark.parametrize("word", ["aabc", "aaaa", " ", "é"])
def test_ten_megabytes_of_one_word_end_cleanly(word: str) -> None:
    tokenizer = byte_tokenizer()
    text = word * (10_000_000 // len(word))
    vanilla = vanilla_windows([text], tokenizer, length=128, count=1, seed=0)
    chunked = chunked_windows([text, "x" + text], tokenizer, length=128, count=1, seed=0)
    assert vanilla.sources[0]["pieces"][0]["fraction"][1] < 1e-4
    assert chunked.report["drawn_from_their_beginning_only"]["documents"] == 2


def test_a_text_that_is_nearly_all_padding_is_counted_not_read_for_ever() -> None:
    with pytest.raises(InvalidInput, match=r"1 fewer than 100 tokens in the first \d+ characters"):
        vanilla_windows(["w1" + " " * 1_000_000 + "w2"], WORDS, length=100, count=1, seed=0)


def test_many_tiny_lines_are_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "tiny.jsonl"
    with path.open("w") as file:
        file.writelines('{"text": "tiny"}\n' for _ in range(30_000))
    tracemalloc.start()
    with pytest.raises(InvalidInput, match=r"got 0 of 30000 found .*30000 shorter than 100 tokens"):
        vanilla_windows(path, WORDS, length=100, count=1, seed=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000  # one pool of 2000 documents has 1.4 MB, all of them would have 20


@pytest.mark.demo
def test_real_documents(demo_folder: Path, demo_tokenizer: Any) -> None:
    source = demo_folder / "documents"
    for build, used in ((vanilla_windows, 24), (chunked_windows, 24 * 8)):
        windows = build(source, demo_tokenizer, length=512, count=24, seed=0)
        assert windows.ids.shape == (24, 512)
        assert windows.report["documents"]["found"] == 640
        assert windows.report["documents"]["used"] == used
        check_counts(windows, 640)
        for ids, record in zip(windows.ids, windows.sources, strict=True):
            for piece in record["pieces"]:
                text = (source / piece["document"]).read_bytes().decode()
                spelled = demo_tokenizer.decode(ids[slice(*piece["positions"])])
                # A window can begin or end inside a character of several bytes; Django's texts are nearly all ASCII.
                assert spelled.strip("\ufffd") in text[slice(*piece["characters"])]
                assert len(spelled) >= len(text[slice(*piece["characters"])]) - 2
