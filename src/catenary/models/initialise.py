"""Build an untrained network from a config: the family's own initialisation, seeded, the outer generator untouched."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from catenary.errors import InvalidInput, MissingResource, invalid
from catenary.models.extra import torch, transformers
from catenary.models.unmeasured import check_measurable

STD_FIELDS = ("initializer_range", "init_std", "initializer_factor")
"""Where configs keep the std of the initial weights, in the order in which transformers looks."""


def build_config(config: Mapping[str, Any], *, init_std: float | None, vocabulary: int | None) -> Any:
    """A transformers config from a ``config.json``, with another initial std or a smaller vocabulary if asked.

    Raises:
        InvalidInput: for a bad ``init_std`` or ``vocabulary``, or a ``model_type`` transformers does not know.
    """
    kind = config.get("model_type")
    known = transformers().CONFIG_MAPPING
    if not isinstance(kind, str) or kind not in known:
        raise invalid("model_type", "must be one that transformers knows", kind, "custom code needs trust_remote_code")
    fields = {name: value for name, value in config.items() if name != "model_type"}
    if vocabulary is not None:
        if vocabulary < 2:
            raise invalid("vocabulary", "must be >= 2", vocabulary)
        fields["vocab_size"] = vocabulary
        # A padding row or a special token outside the smaller embedding would be refused or drawn as zeros.
        fields.update(dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id")))
    try:
        built = known[kind].from_dict(fields)
    except Exception as error:  # config classes raise many types; each means that a field is wrong
        raise InvalidInput(f"config must be a valid {kind} config, got {type(error).__name__}: {error}") from error
    if init_std is not None:
        if not (init_std > 0 and init_std < float("inf")):
            raise invalid("init_std", "must be > 0 and finite", init_std, "constant weights give no profile")
        text = built.get_text_config()
        setattr(text, next((name for name in STD_FIELDS if hasattr(text, name)), STD_FIELDS[0]), float(init_std))
    return built


def draw(config: Any, seed: int, attention: str) -> tuple[torch.nn.Module, str]:
    """A float32 network on the CPU with weights drawn from ``seed``, and the attention implementation it got.

    ``sdpa`` falls back to ``eager`` for the model types that refuse it. transformers draws from torch's global
    generator; its state is saved, seeded inside and put back.
    """
    check_measurable(getattr(config, "model_type", None))
    auto = transformers().AutoModelForCausalLM
    for implementation in dict.fromkeys((attention, "eager")):
        state = torch.get_rng_state()
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed the accelerators too
        try:
            with quiet():
                module = auto.from_config(config, attn_implementation=implementation, dtype=torch.float32)
            return module, implementation
        except ImportError as error:
            reason = " ".join(str(error).split())[:200]
            raise MissingResource(f"{config.model_type} needs a package that is not installed: {reason}") from error
        except (AttributeError, KeyError, TypeError, RuntimeError) as error:
            version, reason = transformers().__version__, " ".join(str(error).split())[:200]
            raise InvalidInput(
                f"config must be one that transformers {version} can build a causal language model from, got "
                f"{type(error).__name__}: {reason}"
            ) from error
        except ValueError as error:
            if "attention implementation" not in str(error) or implementation == "eager":
                raise InvalidInput(f"config must describe a causal language model, got: {error}") from error
        finally:
            torch.set_rng_state(state)
    raise MissingResource(f"no attention implementation out of {attention}, eager")


def words(module: torch.nn.Module, config: Any, init_std: float | None) -> str:
    """What initialisation was used, in one line, with the std of the embedding as drawn."""
    text = config.get_text_config()
    field = next((name for name in STD_FIELDS if getattr(text, name, None) is not None), None)
    given = "" if init_std is None else " (given)"
    setting = "class default std" if field is None else f"{field}={getattr(text, field):g}{given}"
    drawn = float(module.get_input_embeddings().weight.detach().float().std())  # type: ignore[operator]  # HF method
    version = transformers().__version__
    family = f"{type(module).__name__}._init_weights of transformers {version}"
    return f"{family}, {setting}; embedding std drawn {drawn:.4g}"


def check_std(module: torch.nn.Module, init_std: float) -> None:
    """Refuse a family that ignores the std it was given: no matrix of the network has it to 10 %.

    A matrix of n entries shows its std to 1/sqrt(2n), 2 % at the smallest size read here.
    """
    matrices = [weight.detach() for weight in module.parameters() if weight.ndim == 2 and weight.numel() >= 1024]
    stds = [float(matrix.std()) for matrix in matrices]
    if stds and min(abs(std / init_std - 1) for std in stds) > 0.1:
        raise invalid(
            "init_std", f"must be followed by the family's initialisation, which {type(module).__name__} does not",
            init_std, "set its own config fields instead",
        )


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' log lines below errors and its progress bars while the context is open."""
    logger = logging.getLogger("transformers")
    level = logger.level
    bars = transformers().utils.logging
    showing = bars.is_progress_bar_enabled()
    logger.setLevel(logging.ERROR)
    bars.disable_progress_bar()
    try:
        yield
    finally:
        logger.setLevel(level)
        if showing:
            bars.enable_progress_bar()
