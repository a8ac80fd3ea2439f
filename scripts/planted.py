"""Small made-up inputs of the gallery: outcomes of retrieval around published means, a byte tokenizer, and what is
drawn from them without a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from catenary.figures import to_svg
from catenary.page.link import link_section
from catenary.page.retrieve import retrieve_exhibit
from catenary.retrieval.link import LinkTable, agree
from catenary.retrieval.outcomes import Outcomes
from catenary.retrieval.records import write_outcomes
from catenary.retrieval.scoring.rates import Rates
from catenary.retrieval.statistics import slot_curve
from catenary.study.retrieve import RetrieveStudy

MEANS = np.array([-0.64, -1.00, -1.10, -1.13, -1.08, -1.06, -0.99, -0.89, -0.80, -0.64])
"""Log-probability per token by slot, SmolLM2-135M-Instruct on facts: docs/retrieval.md. The scatter is made up."""

SAMPLES = 60


def outcomes() -> Outcomes:
    """Sixty samples about ``MEANS``: .4 nats between samples, .25 between the slots of one."""
    draw = np.random.default_rng(0)
    slots = len(MEANS)
    own = 0.4 * draw.normal(size=(SAMPLES, 1)) + 0.25 * draw.normal(size=(SAMPLES, slots))
    right = (draw.random((SAMPLES, slots)) < np.exp(MEANS)).astype(np.float64)
    blank = [[""] * slots] * SAMPLES
    return Outcomes(
        "planted", tuple(f"sample {n}" for n in range(SAMPLES)), tuple(range(slots)), slots,
        {"best_subspan": right, "logp": np.minimum(MEANS + own, -1e-3)}, blank, [["x"] * slots] * SAMPLES,
        [[400] * slots] * SAMPLES,
    )  # fmt: skip


def retrieval() -> str:
    """The curve of log-probability as ``catenary retrieve`` draws it."""
    none = np.zeros(len(MEANS))
    study = RetrieveStudy(outcomes(), Rates(none, none, none, none), (), (), "")
    plates = {plate.name: plate for plate in retrieve_exhibit(study, "logp", {}).plates}
    return to_svg(plates["logp"].chart)


def link() -> str:
    """Predictors beside the curve as ``catenary retrieve --link`` draws them: two made to agree, one that does not."""
    draw = np.random.default_rng(1)
    x = np.linspace(0, 1, len(MEANS))
    true = {"jacobian": np.exp(MEANS), "attention": np.exp(0.6 * MEANS + 0.3 * x), "birth": np.exp(-2 * x)}
    rows = {name: values * np.exp(0.3 * draw.normal(size=(SAMPLES, len(x)))) for name, values in true.items()}
    table = LinkTable(tuple(range(len(x))), len(x), tuple(n % len(x) for n in range(SAMPLES)), rows)
    section = link_section({"logp": agree(slot_curve(outcomes(), "logp"), table, resamples=400)}, table)
    return to_svg(section.plates[0].chart)


def write_inputs(folder: Path) -> None:
    """Put ``outcomes.json`` and ``tokenizer`` into ``folder``."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    write_outcomes(outcomes(), folder / "outcomes.json")
    vocabulary = {byte: n for n, byte in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    bytewise = Tokenizer(models.BPE(vocabulary, []))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    held = PreTrainedTokenizerFast(tokenizer_object=bytewise)  # type: ignore[no-untyped-call]  # transformers has none
    held.save_pretrained(str(folder / "tokenizer"))


PICTURES: Mapping[str, Callable[[], str]] = {"retrieval.svg": retrieval, "link.svg": link}
"""What a reader's own run would draw, by file name."""
