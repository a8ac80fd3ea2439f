"""The spread part of `catenary predict`: quantiles over networks whose attention heads are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from catenary.cli.terminal import bar, observing

if TYPE_CHECKING:
    from catenary.architecture import Architecture
    from catenary.theory.sampled.quantiles import BirthQuantiles

CORE = 2.5e10
"""Operations of a matrix product per second on one core: measured here, L = 256 in float64."""


def check_drawn(architecture: Architecture, length: int, theory: str, ids: Any, repeat_probability: float) -> None:
    """Refuse what ``draw_networks`` cannot draw, before anything is computed or said."""
    import numpy

    from catenary.errors import invalid
    from catenary.protocols import TokenLaw
    from catenary.theory.sampled.quantiles import check_drawable

    if theory != "birth":
        raise invalid("quantiles", "go with --theory birth", theory)
    if ids is not None and numpy.asarray(ids).size != length:
        raise invalid("ids", f"must hold one window of {length} tokens with --quantiles", numpy.shape(ids))
    check_drawable(architecture, length, TokenLaw(None if ids is None else numpy.ravel(ids), repeat_probability))


def draw_networks(architecture: Architecture, length: int, ids: Any, networks: int, quiet: bool) -> BirthQuantiles:
    """Draw ``networks`` networks at one window of tokens, behind a progress bar; ``check_drawn`` comes first."""
    import numpy

    from catenary.protocols import TokenLaw
    from catenary.theory.sampled.quantiles import birth_quantiles, products_per_network

    tokens = TokenLaw(None if ids is None else numpy.ravel(ids))
    with observing(quiet) as observer:
        operations = networks * products_per_network(architecture, length, tokens.ids is not None) * 2 * length**3
        observer.say(f"drawing {networks} networks: about {operations / CORE:.0f} s on one core")
        return birth_quantiles(architecture, length, tokens, networks=networks, progress=bar(observer, "networks"))
