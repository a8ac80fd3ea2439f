"""Load a network: freshly initialised from its config, or with its weights."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from catenary.configs.locate import locate_config
from catenary.configs.read import read_config
from catenary.errors import InvalidInput, MissingResource, invalid, unknown
from catenary.models import initialise
from catenary.models.alive import check_alive
from catenary.models.anatomy import dissect
from catenary.models.device import find_device
from catenary.models.extra import torch, transformers
from catenary.models.model import Model
from catenary.models.passing import check_passing
from catenary.models.rope import switch_rotary_off
from catenary.models.weights import weights_folder

DTYPES = ("float32", "bfloat16", "float16", "float64")
ATTENTION = ("sdpa", "eager")


def load(
    model: str | Path | Mapping[str, Any],
    *,
    weights: Literal["untrained", "pretrained"] = "untrained",
    seed: int = 0,
    init_std: float | None = None,
    rope: bool = True,
    device: str = "cpu",
    dtype: str = "float32",
    attention: str = "sdpa",
    revision: str | None = None,
    trust_remote_code: bool = False,
    vocabulary: int | None = None,
) -> Model:
    """Load a causal language model, frozen and in eval mode, with a record of how it was made.

    Args:
        model: a folder, a ``config.json``, a preset name, a hub id, or (untrained only) a config as a dict.
        weights: ``untrained`` draws them with the family's own initialisation, ``pretrained`` reads safetensors.
        seed: seed of the untrained weights. They are drawn in float32 on the CPU, so that another ``dtype`` or
            ``device`` holds the same network rounded.
        init_std: std of the initial weights in place of the config's; the family's own scaling follows it.
        rope: False sets all rotary frequencies to 0, and checks that positions then do not matter.
        device: a torch device.
        dtype: float32, bfloat16, float16 or float64, of the parameters. Rotary frequencies keep their type.
        attention: ``sdpa`` or ``eager``; types that refuse ``sdpa`` get ``eager``, which is recorded.
        revision: hub revision.
        trust_remote_code: run Python code that comes with the model. Off unless asked for.
        vocabulary: number of embedding rows of an untrained network that is only fed vectors. Weights are drawn
            in order, so another vocabulary is another draw of the same law.

    Raises:
        InvalidInput: for bad arguments, pickle weights, constant or incomplete weights.
        NotApplicable: when ``rope=False`` does not apply, or the network is not a causal decoder.
        MissingResource: when the model, its weights or a device is not there.
    """
    if dtype not in DTYPES:
        raise unknown("dtype", str(dtype), DTYPES)
    if attention not in ATTENTION:
        raise unknown("attention", str(attention), ATTENTION)
    target = find_device(device)
    options = _Options(seed, init_std, attention, revision, trust_remote_code, vocabulary)
    makers = {"untrained": _untrained, "pretrained": _pretrained}
    if weights not in makers:
        raise unknown("weights", str(weights), makers)
    made = makers[weights](model, options)
    module = made.module.eval().requires_grad_(False)
    # The loop casts parameters only: Module.to would round the rotary frequencies too.
    for parameter in module.parameters():
        parameter.data = parameter.data.to(getattr(torch, dtype))
    module.to(target)
    notes = [*made.notes, *check_alive(module, made.anatomy)]
    if weights == "pretrained":  # what is drawn here is never quantised
        check_passing(module, made.anatomy)
    for note in notes[len(made.notes) :]:
        warnings.warn(f"{made.name}: {note}", stacklevel=2)
    if not rope:
        switch_rotary_off(module, made.anatomy)
    return replace(made, rope=rope, notes=tuple(notes))


@dataclass(frozen=True)
class _Options:
    """The arguments of ``load`` that decide which network it is."""

    seed: int
    init_std: float | None
    attention: str
    revision: str | None
    trust_remote_code: bool
    vocabulary: int | None


def _untrained(model: str | Path | Mapping[str, Any], options: _Options) -> Model:
    if isinstance(options.seed, bool) or not isinstance(options.seed, int) or not 0 <= options.seed < 2**63:
        raise invalid("seed", "must be an integer in [0, 2^63)", options.seed)
    located = locate_config(model, revision=options.revision)
    if options.trust_remote_code and located.folder is not None:
        config = transformers().AutoConfig.from_pretrained(located.folder, trust_remote_code=True)
    else:
        config = initialise.build_config(located.config, init_std=options.init_std, vocabulary=options.vocabulary)
    module, attention = initialise.draw(config, options.seed, options.attention)
    if options.init_std is not None:
        initialise.check_std(module, options.init_std)
    made = Model(
        module,
        dissect(module),
        located.name,
        _plain(config),
        "untrained",
        options.seed,
        initialise.words(module, config, options.init_std),
        folder=located.folder,
        revision=options.revision,
        trust_remote_code=options.trust_remote_code,
        vocabulary=options.vocabulary,
        notes=_fallback(options.attention, attention),
    )
    return _describe(made, model, options)


def _pretrained(model: str | Path | Mapping[str, Any], options: _Options) -> Model:
    if isinstance(model, Mapping):
        raise invalid("model", "must be a folder or a hub id for pretrained weights", "a config as a dict")
    for argument in ("init_std", "vocabulary"):
        if getattr(options, argument) is not None:
            raise invalid(argument, "applies to untrained networks only", getattr(options, argument), "leave it out")
    source = str(model)
    if Path(source).is_file() and Path(source).name == "config.json":
        source = str(Path(source).parent)
    folder, revision = weights_folder(
        source.removeprefix("hub:"), revision=options.revision, trust_remote_code=options.trust_remote_code
    )
    module, attention = _read(folder, source, options)
    made = Model(
        module,
        dissect(module),
        Path(source).name if Path(source).is_dir() else source.removeprefix("hub:"),
        _plain(module.config),
        "pretrained",
        folder=folder,
        revision=revision,
        trust_remote_code=options.trust_remote_code,
        notes=_fallback(options.attention, attention),
    )
    return _describe(made, folder, replace(options, revision=None))


def _read(folder: Path, source: str, options: _Options) -> tuple[torch.nn.Module, str]:
    """Read safetensors in float32, and refuse a file that leaves some weights at random values."""
    auto = transformers().AutoModelForCausalLM
    for implementation in dict.fromkeys((options.attention, "eager")):
        try:
            with initialise.quiet():
                module, report = auto.from_pretrained(
                    folder, use_safetensors=True, local_files_only=True, dtype=torch.float32, output_loading_info=True,
                    attn_implementation=implementation, trust_remote_code=options.trust_remote_code,
                )
        except ValueError as error:
            if "attention implementation" in str(error) and implementation != "eager":
                continue
            raise InvalidInput(f"model {source!r} cannot be read: {error}") from error
        except OSError as error:
            raise MissingResource(f"model {source!r} cannot be read from {folder}: {error}") from error
        absent = sorted(report["missing_keys"]) + sorted(str(key) for key in report["mismatched_keys"])
        if absent:
            raise InvalidInput(
                f"weights must be complete, got {len(absent)} that the files of {source!r} lack or hold in another "
                f"shape: {absent[0]}, …; they would stay at random values"
            )
        return module, implementation
    raise MissingResource(f"no attention implementation out of {options.attention}, eager")


def _describe(made: Model, model: str | Path | Mapping[str, Any], options: _Options) -> Model:
    """Add the description theory uses; a config that has none stops theory, not loading, and a note says why."""
    try:
        return replace(made, architecture=read_config(model, init_std=options.init_std, revision=options.revision))
    except InvalidInput as error:
        return replace(made, notes=(*made.notes, f"no description for theory: {error}"))


def _plain(config: Any) -> dict[str, Any]:
    return dict(json.loads(config.to_json_string(use_diff=False)))


def _fallback(asked: str, got: str) -> tuple[str, ...]:
    return () if asked == got else (f"attention is {got}: this model type refuses {asked}",)
