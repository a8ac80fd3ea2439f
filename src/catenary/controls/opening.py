"""How the tokenizer opens a window: exactly one BOS, or none where it has none, also behind a chat template."""

from __future__ import annotations

from typing import Any

from catenary.controls.check import Check, judge
from catenary.controls.control import Control
from catenary.controls.subject import Subject
from catenary.errors import NotApplicable
from catenary.text.tokenise import open_with, opening, tokenise_text

TEXT = "a b"


def _check(subject: Subject) -> Check:
    tokenizer = subject.tokenizer
    if tokenizer is None:
        raise NotApplicable(subject.no_tokenizer)
    bos = tokenizer.bos_token_id
    start = opening(tokenizer, subject.bos)
    in_windows = {_leading(row.tolist(), bos) for row in subject.windows.ids}
    by_itself = _leading(tokenizer(TEXT)["input_ids"], bos)
    rendered, behind = _template(tokenizer, subject)
    wanted = start.bos
    right = in_windows == {wanted} and behind in (None, max(wanted, min(rendered or 0, 1)))
    doubled = max(by_itself, rendered or 0)
    if bos is None:
        said = "the tokenizer has no BOS token, and none is invented"
    else:
        said = f"BOS is {tokenizer.bos_token!r}. The tokenizer puts {_count(by_itself)} in front of a text"
    if rendered is not None:
        said += f", its chat template, rendered and tokenized, opens with {_count(rendered)}"
    said += f", and every window here with {_count(wanted)} (--bos {subject.bos})"
    if doubled > 1:
        said += ". Tokenize a rendered template with add_special_tokens=False: two BOS are not what the network knows"
    if not right:
        said += f", but windows were found that open with {sorted(in_windows)}, and behind a template with {behind}"
    return judge(
        NAME, right and doubled <= 1, said, in_windows=max(in_windows), by_tokenizer=by_itself, by_template=rendered,
        behind_template=behind, policy=start.policy,
    )  # fmt: skip


def _template(tokenizer: Any, subject: Subject) -> tuple[int | None, int | None]:
    """BOS tokens that open a rendered template: tokenized the ordinary way, and as windows are; None without one."""
    if not getattr(tokenizer, "chat_template", None):
        return None, None
    text = tokenizer.apply_chat_template([{"role": "user", "content": TEXT}], tokenize=False)
    bos = tokenizer.bos_token_id
    tokens = tokenise_text(text, tokenizer, special_tokens=True).ids
    ours = open_with(tokens, opening(tokenizer, subject.bos), bos)
    return _leading(tokenizer(text)["input_ids"], bos), _leading(ours.tolist(), bos)


def _leading(ids: list[int], bos: int | None) -> int:
    """How many BOS tokens a sequence opens with."""
    count = 0
    while count < len(ids) and ids[count] == bos:
        count += 1
    return count


def _count(number: int) -> str:
    return f"{number or 'no'} BOS"


NAME = "BOS"
OPENING = Control(NAME, "A text opens with exactly one BOS, or with none where the tokenizer puts none.", _check)
