"""Words for generated tasks: common nouns of which none is part of another, and prose made from them by a seed."""

from __future__ import annotations

import numpy as np

WORDS = """
anchor apron basket blanket bottle bridge bucket button cabinet candle carpet castle chimney clock coffee compass
copper cotton cradle curtain desert diamond drawer eagle engine feather fiddle forest garden giraffe glove guitar
hammer harbor helmet hotel island jacket kettle ladder lantern lemon library magnet marble medal meadow mirror
monkey mountain needle notebook onion orange oven palace parrot pencil pepper piano pillow planet pocket potato
pumpkin rabbit river rocket saddle sailor salmon scissors shadow shovel silver spider sponge stadium statue
sugar tailor teapot temple tiger tomato tunnel turtle umbrella valley velvet violin walnut whistle willow window
zebra
"""
NOUNS = tuple(WORDS.split())
QUALITIES = (
    "old", "quiet", "narrow", "bright", "heavy", "plain", "distant", "painted", "broken", "empty", "small", "early",
)
VERBS = (
    "stood beside", "was carried past", "was kept near", "was sold with", "faced", "was painted like", "was left by",
)
TIMES = (
    "In spring", "Later that day", "For many years", "Before noon", "Most of the time", "Once a week", "After the rain",
)
PLACES = ("by the gate", "on the hill", "under the roof", "along the road", "at the market", "in the yard")


def draw_words(count: int, generator: np.random.Generator) -> list[str]:
    """``count`` different nouns."""
    return [NOUNS[at] for at in generator.permutation(len(NOUNS))[:count]]


def prose(length: int, generator: np.random.Generator) -> str:
    """At least ``length`` characters of simple sentences in paragraphs of five. They mean nothing and hold no digit."""
    paragraphs: list[str] = []
    size = 0
    while size < length + 2:
        paragraphs.append(" ".join(_sentence(generator) for _ in range(5)))
        size += len(paragraphs[-1]) + 2
    return "\n\n".join(paragraphs)


def _sentence(generator: np.random.Generator) -> str:
    def one(words: tuple[str, ...]) -> str:
        return words[int(generator.integers(len(words)))]

    first, second = (f"the {one(QUALITIES)} {one(NOUNS)}" for _ in range(2))
    return f"{one(TIMES)} {first} {one(VERBS)} {second} {one(PLACES)}."
