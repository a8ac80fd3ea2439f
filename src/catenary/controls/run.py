"""Run controls on a network: what each says, what could not be run, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from catenary.controls.catalogue import CONTROLS
from catenary.controls.check import Check
from catenary.controls.control import Control
from catenary.controls.subject import FEW, Subject
from catenary.errors import InvalidInput, NotApplicable, invalid
from catenary.measure.checks import check_count
from catenary.measure.cost import Cost, estimate, layer_parameters
from catenary.models.extra import torch
from catenary.models.model import Model, adopt
from catenary.text.documents import PYTHON_DOCS, Documents, read_documents
from catenary.text.synthetic import random_windows
from catenary.text.tokenise import Bos
from catenary.text.vanilla import vanilla_windows
from catenary.text.windows import Windows

DRAWING = 2e-8
"""Seconds to draw and check one parameter of an untrained network, measured on one shared core."""


def check_controls(
    model: Model | torch.nn.Module,
    *,
    length: int = 128,
    windows: int = 4,
    probes: int = 1,
    seed: int = 0,
    tokenizer: Any = None,
    documents: Documents | None = None,
    bos: Bos = "tokenizer",
    debug: bool = False,
) -> tuple[Check, ...]:
    """Run every control on a network and say what holds.

    Args:
        model: from ``load``, or a transformers module you hold, which is left as it was found; a control says so.
        length: tokens L >= 16 of a window.
        windows: how many, at least 2: the noise between them is what effects are compared with.
        probes: cotangents per window.
        seed: of windows, probes and the networks drawn beside.
        tokenizer: of the model; without one trained networks read random token ids, untrained ones random vectors,
            and what is about BOS does not apply.
        documents: what windows are cut from; the language reference that comes with Python if None.
        bos: ``tokenizer``, ``none`` or ``one``, as ``vanilla_windows``.
        debug: let an error that is a bug of ours end the run, with its traceback.

    Raises:
        InvalidInput: bad arguments, or documents that do not give the windows.
        NotApplicable: not a causal decoder.
    """
    subject = make_subject(
        model, length=length, windows=windows, probes=probes, seed=seed, tokenizer=tokenizer, documents=documents,
        bos=bos,
    )  # fmt: skip
    return tuple(run_controls(subject, debug=debug))


def make_subject(
    model: Model | torch.nn.Module,
    *,
    length: int,
    windows: int,
    probes: int,
    seed: int,
    tokenizer: Any = None,
    no_tokenizer: str = "no tokenizer",
    documents: Documents | None = None,
    bos: Bos = "tokenizer",
) -> Subject:
    """The network with its windows; arguments as ``check_controls``."""
    check_count("length", length, 16)
    check_count("windows", windows, 2)
    check_count("probes", probes)
    check_count("seed", seed, 0)
    if not isinstance(model, Model):
        _refuse_a_window_of_nothing(model)
    held = model if isinstance(model, Model) else adopt(model)
    if held.max_length is not None and length > held.max_length:
        raise invalid("length", f"must be <= {held.max_length}, the longest of {held.name!r}", length)
    source = (documents or read_documents(PYTHON_DOCS)) if tokenizer is not None else None
    if source is not None:
        read = vanilla_windows(source, tokenizer, length=length, count=windows, seed=seed, bos=bos)
    elif held.weights == "untrained":
        read = random_windows(length, windows, seed)
    else:
        rows = int(held.embedding_weight.shape[0])
        read = Windows(np.random.default_rng(seed).integers(0, rows, (windows, length)), "uniform", "model", seed)
    subject = Subject(held, read, seed, probes, tokenizer, no_tokenizer, source, bos)
    _ = subject.before
    return subject


def _refuse_a_window_of_nothing(module: torch.nn.Module) -> None:
    """A window of 0 in the config, which many read as none: its attention is dead, and this is why."""
    config: Any = getattr(module, "config", None)
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    width = getattr(text, "sliding_window", None)
    if width == 0 and not isinstance(width, bool) and getattr(text, "use_sliding_window", True):
        raise invalid(
            "sliding_window", "must be >= 1, or null for none", 0,
            "transformers does not read 0 as 'no window': it hides every key from every query",
        )  # fmt: skip


def run_controls(
    subject: Subject,
    controls: Sequence[Control] = CONTROLS,
    *,
    debug: bool = False,
    started: Callable[[Control], None] | None = None,
) -> Iterator[Check]:
    """What each control says, as it becomes known; one that fails does not stop the others.

    ``started`` is told of every control before it runs. With ``debug`` an error of ours is raised, not reported.
    """
    for control in controls:
        if started is not None:
            started(control)
        start = time.perf_counter()
        check = _run(control, subject, debug)
        yield replace(check, claim=control.claim, seconds=time.perf_counter() - start)


def _run(control: Control, subject: Subject, debug: bool) -> Check:
    try:
        return control.run(subject)
    except NotApplicable as error:
        return Check(control.name, "not applicable", str(error))
    except InvalidInput as error:
        return Check(control.name, "could not run", str(error))
    except Exception as error:
        if debug:
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        return Check(control.name, "could not run", f"internal error: {what}; --debug shows where")


def estimate_controls(subject: Subject, controls: Sequence[Control] = CONTROLS) -> Cost:
    """Processor seconds and peak memory of ``run_controls``, from a short pilot of the network."""
    model, count = subject.model, len(subject.windows)
    one = estimate(model, subject.windows.length, 1, subject.probes)
    passes = sum(control.profiles * count + control.few * min(FEW, count) for control in controls)
    networks = sum(control.networks for control in controls)
    parameters = layer_parameters(model.architecture) if model.architecture else 0
    weights = sum(part.numel() * part.element_size() for part in model.module.parameters())
    return Cost(passes * one.seconds + networks * parameters * DRAWING, one.bytes + weights)
