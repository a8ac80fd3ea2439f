"""Controls on MODEL: the network and the text they are run on, found and loaded as any study does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

from catenary.controls import CONTROLS, Check, Subject, Verdict, estimate_controls, make_subject, run_controls
from catenary.controls.control import Control
from catenary.errors import InvalidInput, MissingResource
from catenary.study.config import StudyConfig
from catenary.study.inputs import load_tokenizer
from catenary.study.memory import usable_memory
from catenary.study.observer import Observer
from catenary.study.source import Source, find_source, with_files
from catenary.text.documents import PYTHON_DOCS, read_documents

VOCABULARY = 64
"""Rows of the embedding of an untrained network that is fed vectors."""

MANY: Mapping[Verdict, str] = {
    "holds": "hold", "does not hold": "do not hold", "not applicable": "not applicable",
    "could not run": "could not run",
}  # fmt: skip
"""Each verdict on several checks."""

COLUMNS = 110
"""Width of the printed table."""


@dataclass(frozen=True)
class Controlled:
    """What the controls of one MODEL said, and what they were run on, in words."""

    network: str
    windows: str
    checks: tuple[Check, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"network": self.network, "windows": self.windows, "checks": [check.to_dict() for check in self.checks]}

    def counts(self) -> str:
        """How many checks have each verdict: ``11 hold, 2 not applicable``."""
        verdicts = [check.verdict for check in self.checks]
        return ", ".join(f"{verdicts.count(verdict)} {many}" for verdict, many in MANY.items() if verdict in verdicts)


def control_model(
    config: StudyConfig, windows: int, probes: int, observer: Observer, *, untrained: bool = False, debug: bool = False
) -> Controlled:
    """Run all controls on MODEL: with its weights where there are some, else or if ``untrained`` on a fresh network.

    Raises:
        InvalidInput: MODEL, its documents or the sizes are at fault, or it would not fit into memory.
        MissingResource: MODEL or an optional dependency is not there.
    """
    source = find_source(config)
    try:
        source = with_files(source, config)
    except MissingResource as error:
        observer.say(str(error))
    if untrained:
        source = replace(source, weights=None, no_weights="an untrained network was asked for")
    _check_memory(config, source)
    subject = _subject(config, source, windows, probes)
    took = estimate_controls(subject)
    network, read = f"{subject.model!r}", _reading(config, subject)
    observer.say(f"{len(CONTROLS)} controls on {network}, {read}: {took.words} on an idle core")
    checks: list[Check] = []

    def started(control: Control) -> None:
        observer.begin(control.name, len(CONTROLS))
        observer.advance(len(checks))

    for check in run_controls(subject, debug=debug, started=started):
        checks.append(check)
        observer.end()
    return Controlled(network, read, tuple(checks))


def _subject(config: StudyConfig, source: Source, windows: int, probes: int) -> Subject:
    from catenary.models.load import load

    trained = source.weights is not None
    tokenizer = load_tokenizer(config, source) if source.tokenizer is not None else None
    model = load(
        config.model,
        weights="pretrained" if trained else "untrained",
        seed=0 if trained else config.seed,
        init_std=None if trained else config.init_std,
        device=config.device,
        dtype=config.dtype,
        attention=config.attention,
        revision=config.revision,
        trust_remote_code=config.trust_remote_code,
        vocabulary=None if trained or tokenizer is not None else VOCABULARY,
    )
    return make_subject(
        model, length=config.length, windows=windows, probes=probes, seed=config.seed, tokenizer=tokenizer,
        no_tokenizer=source.no_tokenizer, bos=config.bos,
        documents=read_documents(config.documents or PYTHON_DOCS) if tokenizer is not None else None,
    )  # fmt: skip


def _reading(config: StudyConfig, subject: Subject) -> str:
    shape = f"{len(subject.windows)} windows of {subject.windows.length} tokens"
    kinds = {"random": "random vectors", "uniform": "random token ids"}
    return f"{shape} of {kinds.get(subject.windows.kind, config.documents or 'the language reference of Python')}"


def _check_memory(config: StudyConfig, source: Source) -> None:
    """Refuse what would not fit: the network in float32 and in a second dtype beside it."""
    from catenary.measure.cost import estimate

    full = source.weights is not None or source.tokenizer is not None
    need = 1.5 * estimate(
        source.architecture, config.length, 1, 1, "float32", vocabulary=None if full else VOCABULARY,
        device=config.device,
    ).bytes  # fmt: skip
    free = usable_memory(config.device)
    if need > free:
        raise InvalidInput(
            f"controls on {config.model!r} need about {need / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free; "
            "give a smaller --length, or run them on a smaller model of the same family"
        )


def shown(controls: Sequence[Check]) -> str:
    """A paragraph per check: its verdict and claim, and below it what was seen, in lines of ``COLUMNS``."""
    margin = 2 + max(len(check.verdict) for check in controls)
    lines: list[str] = []
    for check in controls:
        lines.append(f"{check.verdict:<{margin}}{check.name}: {check.claim}")
        lines += wrap(check.sentence, COLUMNS, initial_indent=margin * " ", subsequent_indent=margin * " ")
    return "\n".join(lines)
