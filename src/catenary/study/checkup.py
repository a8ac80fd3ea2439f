"""What `doctor` finds out: the environment, and what one MODEL is and can be used for. Nothing is measured."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from catenary.errors import InvalidInput
from catenary.provenance import versions
from catenary.reading import counted
from catenary.study.config import StudyConfig
from catenary.study.memory import free_memory
from catenary.study.source import Source, find_source

Status = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    """One line of the check-up."""

    topic: str
    status: Status
    text: str


def check_environment() -> Iterator[Finding]:
    """Versions, optional parts, processors, memory, accelerators, browser."""
    found = versions()
    yield Finding("versions", "ok", ", ".join(f"{name} {version}" for name, version in found.items()))
    for module, use in (("torch", "measuring"), ("transformers", "measuring"), ("datasets", "hf: documents")):
        if importlib.util.find_spec(module) is None:
            extra = "datasets" if module == "datasets" else "models"
            yield Finding(module, "note", f"not installed, needed for {use}: pip install 'catenary[{extra}]'")
    yield Finding("processors", "ok", f"{os.cpu_count()} cores, {free_memory('cpu') / 2**30:.1f} GiB memory free")
    if importlib.util.find_spec("torch") is not None:
        yield from _accelerators()
    offline = os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0")
    if offline:
        yield Finding("hub", "note", "HF_HUB_OFFLINE is set: only models in the local cache are found")
    browser = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)
    yield Finding("browser", "ok", f"{browser or 'none found'} (only the tests and the screenshot script use one)")


def _accelerators() -> Iterator[Finding]:
    import torch

    threads = torch.get_num_threads()
    yield Finding("torch", "ok", f"{threads} CPU threads; sharing cores with other work, give --threads 1")
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        names.append("Apple MPS")
    yield Finding("accelerators", "ok", ", ".join(names) if names else "none: measuring runs on the CPU")


def check_model(config: StudyConfig) -> Iterator[Finding]:
    """Config, weights, tokenizer and BOS, initialisation, logit variance, attention and windows of one MODEL."""
    source = find_source(config)
    architecture = source.architecture
    yield Finding("config", "ok", source.located.source)
    yield Finding("architecture", "ok", architecture.describe())
    yield Finding("initialisation", "ok", architecture.initialisation)
    longest = architecture.max_length
    if longest is not None:
        status: Status = "ok" if config.length <= longest else "problem"
        yield Finding("length", status, f"{config.length} tokens of at most {longest}")
    for line in architecture.assumed:
        yield Finding("assumed", "note", line)
    for line in architecture.not_expressed:
        yield Finding("not expressed", "note", line)
    yield _weights(source)
    yield from _safely("tokenizer", lambda: _tokenizer(source, config))
    yield from _safely("prediction", lambda: _prediction(config, source))
    if importlib.util.find_spec("torch") is not None:
        yield from _safely("network", lambda: _network(config))


def _safely(topic: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings of a check, or what stopped it as a problem of its own."""
    try:
        yield from list(check())
    except InvalidInput as error:
        yield Finding(topic, "problem", str(error))


def _weights(source: Source) -> Finding:
    if source.weights is None:
        return Finding("weights", "note", source.no_weights)
    size = sum(path.stat().st_size for path in source.weights.glob("*.safetensors"))
    where = "on the hub, not fetched yet" if not size else f"{size / 2**20:.0f} MiB of safetensors"
    return Finding("weights", "ok", where)


def _tokenizer(source: Source, config: StudyConfig) -> Iterator[Finding]:
    if source.tokenizer is None:
        yield Finding("tokenizer", "note", source.no_tokenizer)
        return
    if source.located.kind == "hub":
        yield Finding("tokenizer", "ok", "on the hub, not fetched yet")
        return
    from catenary.study.inputs import load_tokenizer

    tokenizer: Any = load_tokenizer(config, source)
    ids = tokenizer("a", add_special_tokens=True)["input_ids"]
    adds = tokenizer.bos_token_id is not None and ids[:1] == [tokenizer.bos_token_id]
    kind = type(tokenizer).__name__
    bos = repr(tokenizer.bos_token) if tokenizer.bos_token else "none"
    puts = "puts it in front" if adds else "puts nothing in front"
    yield Finding("tokenizer", "ok", f"{kind}, {len(tokenizer)} tokens; BOS token {bos}, {puts}")


def _prediction(config: StudyConfig, source: Source) -> Iterator[Finding]:
    from catenary.theory.prediction import predict

    profile = predict(source.architecture, length=config.length)
    for line in profile.card.statements if profile.card else ():
        doubtful = "not measured" in line or "extrapolated" in line
        yield Finding("prediction", "note" if doubtful else "ok", line)


def _network(config: StudyConfig) -> Iterator[Finding]:
    """Build a small relative of the network (two layers, few tokens) and look at its parts by behaviour."""
    from catenary.configs.locate import locate_config
    from catenary.models.load import load
    from catenary.models.padding import INVISIBLE, padding_dependence
    from catenary.models.portrait import portrait

    small = dict(locate_config(config.model, revision=config.revision).config)
    depths = [key for key in ("num_hidden_layers", "n_layer") if isinstance(small.get(key), int)]
    small.update({key: min(2, small[key]) for key in depths})
    if isinstance(small.get("layer_types"), list):
        small["layer_types"] = small["layer_types"][:2]
    model = load(small, vocabulary=64, attention=config.attention)
    parts, found = model.anatomy, portrait(model.module, model.anatomy)
    depth = len(parts.layers)
    norm = f"{found.final_norm} ({type(parts.final_norm).__name__})" if found.final_norm else "none"
    yield Finding(
        "network", "ok",
        f"looked at in a {type(model.module).__name__} of the same config cut to {counted(depth, 'layer')}: "
        f"{found.layers}, of the kinds {found.mixers}; attention "
        f"{model.attention}, positions {found.positions}, final norm {norm}, embedding {found.embedding} "
        f"({type(parts.embedding).__name__})",
    )  # fmt: skip
    seen = padding_dependence(model.module, parts)
    yield Finding(
        "padding", "ok" if seen < INVISIBLE else "note",
        "padding in front is invisible" if seen < INVISIBLE else
        f"the network sees padding in front (its stream changes by {seen:.2g}): windows must have one length",
    )  # fmt: skip
    for note in model.notes:
        yield Finding("network", "note", note)


def worst(findings: list[Finding]) -> Status:
    """The gravest status among the findings."""
    order: tuple[Status, ...] = ("ok", "note", "problem")
    return max((finding.status for finding in findings), key=order.index, default="ok")


