"""Small files in the formats that retrieval tasks read: a factbook, questions, and the published ones."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

COUNTRIES = 40


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def write_factbook(folder: Path) -> Path:
    """Forty countries and an ocean without a name; numbers that differ, one that two share, one that all share, words.

    The name of each of the first twenty is part of another country's.
    """
    for n in range(COUNTRIES):
        name = f"{'Great ' if n >= 20 else ''}Land {chr(65 + n % 20)}a"
        profile = {
            "Geography": {
                "Area": {"total": {"text": f"{1000 + 37 * n:,} sq km"}, "note": {"text": None}},
                "Coastline": {"text": f"{211 + 13 * (n // 2)} km ++ {5 + n} km (1990)"},
                "Geographic coordinates": {"text": "28 00 N, 3 00 E"},
            },
            "People": {
                "Birth rate": {"text": f"{10 + n / 7:.2f} births/1,000 population (2015 est.)"},
                "Sex ratio": {"text": "1.05 male(s)/female"},
                "Languages": {"text": f"{name} tongue"},
            },
            "Government": {
                "Country name": {"conventional short form": {"text": name if n else "none"},
                                 "conventional long form": {"text": f"Kingdom of {name}" if not n else "none"}},
                "Capital": {"name": {"text": f"Burg{'aeiou'[n % 5]}{'bcdfghjk'[n // 5]}ia (seat)"}},
                "Anthem": {"text": f"Song {'aeiou'[n % 5]}{'klmnprst'[n // 5]}o"},
            },
        }
        path = folder / "region" / f"{chr(97 + n % 26)}{chr(97 + n // 26)}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(profile))
    (folder / "oceans").mkdir()
    (folder / "oceans" / "zz.json").write_text(json.dumps({"Geography": {"Area": {"total": {"text": "9 sq km"}}}}))
    return folder


def questions(count: int = 6, distractors: int = 4) -> list[dict[str, Any]]:
    """Records with and without titles, in another script, with two distractors that are the same."""
    rows: list[dict[str, Any]] = []
    for n in range(count):
        others: list[Any] = [{"title": f"Topic {k}", "text": f"Record {n} says nothing of it, part {k}."}
                             for k in range(distractors - 2)]
        others += ["The same text twice."] * 2
        rows.append({
            "question": f"谁写了第{n}本书?", "answers": [f"作者{chr(0x4E00 + n)}", f"writer {n}w"],
            "gold": {"title": f"Book {n}", "text": f"第{n}本书的作者是作者{chr(0x4E00 + n)}。"}, "distractors": others,
        })
    return rows


def published_record(n: int, slot: int, documents: int) -> dict[str, Any]:
    """One record as published: the gold document lacks id, score, hasanswer and index; distractors have them."""
    gold = {"title": f"Gold {n}", "text": f"The answer to {n} is value-{n}-x, as is known.", "isgold": True}
    ctxs: list[dict[str, Any]] = [
        {"id": str(100 * n + k), "title": f"Title {k}", "text": f"Distracting text {k} of {n}.", "score": 1.5 - k / 10,
         "hasanswer": False, "isgold": False, "original_retrieval_index": k}
        for k in range(documents - 1)
    ]
    ctxs.insert(slot, gold)
    return {"question": f"what is {n}", "answers": [f"value-{n}-x"], "ctxs": ctxs,
            "nq_annotated_gold": {"title": gold["title"], "short_answers": [f"value-{n}-x"]}}


def write_published(folder: Path, slots: Iterable[int] = (0, 2, 4), documents: int = 5, count: int = 7) -> str:
    """Files of one pattern, gold at each of ``slots``; returns the pattern."""
    for slot in slots:
        name = f"nq-open-{documents}_total_documents_gold_at_{slot}.jsonl.gz"
        write_lines(folder / name, (published_record(n, slot, documents) for n in range(count)))
    return str(folder / f"nq-open-{documents}_total_documents_gold_at_*.jsonl.gz")


def write_published_pairs(folder: Path, pairs: int = 5, count: int = 4) -> Path:
    rows = []
    for n in range(count):
        records = [[f"key-{n}-{k}-a", f"val-{n}-{k}-b"] for k in range(pairs)]
        key, value = records[n % pairs]
        rows.append({"ordered_kv_records": records, "key": key, "value": value})
    return write_lines(folder / f"kv-retrieval-{pairs}_keys.jsonl.gz", rows)
