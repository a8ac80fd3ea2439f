"""What a page of profiles shows and what it does not, in sentences that stand beside the figures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Contents:
    """Which kinds of curve a page holds."""

    predicted: bool
    untrained: bool
    trained: bool


@dataclass(frozen=True)
class Claims:
    """Sentences on what may be read off a page, and on what may not."""

    shows: tuple[str, ...]
    does_not: tuple[str, ...]


def claims(contents: Contents) -> Claims:
    """The sentences that apply to a page; the measured figures are of one 135 M model and toy decoders."""
    shows = [
        "How strongly the last position's state, before the final norm, responds to a small change of the input "
        "vector at each position. It is a derivative, not an accuracy.",
        "The last token apart from the rest: its spike is the residual path and one token wide. The shape word is "
        "about the positions between the two ends.",
        "How sure each figure is: intervals are over networks or sequences, and every distance stands beside the "
        "distance that noise alone would show.",
    ]
    does_not = []
    if contents.predicted or contents.untrained:
        if contents.predicted:
            shows.append("What the architecture alone implies: the prediction at birth is computed from the config, "
                         "with nothing fitted to a measurement.")
        does_not += [
            "Where the trained model will find a fact. The profile at birth does not predict retrieval by position: "
            "its rank correlation with three retrieval curves of a trained 135 M model was −0.08, −0.32 and +0.66.",
            "Which positions are learned first. In small decoders trained from scratch the learning time did not "
            "follow the birth profile (elasticity −0.002 ± 0.001, where proportionality would give −1).",
            "“Lost in the middle” at birth. A standard pre-norm causal model has no interior trough before "
            "training: its profile falls towards the end and then jumps at the last token.",
        ]
    if contents.trained:
        shows.append("What training changed, where both are drawn: in SmolLM2-135M, which we measured, the trough "
                     "moves inside and a broad rise towards the end appears.")
        does_not += [
            "Retrieval itself. The trained profile predicted the retrieval curve on some prompt templates and not on "
            "others; measure retrieval before claiming it.",
            "The influence of one single token. Single tokens of a trained profile scatter by about 0.4 dex (a factor "
            "of 2.5) between sequences; read blocks of 16 or more, and never a single-token maximum over minimum.",
        ]
    does_not.append("Agreement by rank. Every falling curve with a final spike has nearly the same Spearman "
                    "correlation with a measurement; read the error by region beside its noise floor.")
    return Claims(tuple(shows), tuple(does_not))
