"""One function from an architecture to a predicted profile, whatever the theory."""

from __future__ import annotations

import os
import platform
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
from jaxtyping import Int64
from threadpoolctl import threadpool_limits

import catenary
from catenary.architecture import Architecture
from catenary.errors import invalid
from catenary.profile import Profile
from catenary.protocols import TokenLaw

# Each of these files registers its theory when it is imported.
from catenary.theory import birth_law, null  # noqa: F401
from catenary.theory.cesaro import density  # noqa: F401
from catenary.theory.cesaro import row as cesaro  # noqa: F401
from catenary.theory.rollout import law as rollout  # noqa: F401
from catenary.theory.theories import THEORIES

LONGEST = 1 << 24
"""Largest length: beyond it a curve of one number per position is no longer a small array."""

ONE_THREAD = (1, "blas")
"""A law is many small products, which more threads make a tenth faster on idle cores, and many times slower where a
core has other work: a thread of BLAS waits for the others in a loop. Windows have a worker each."""


def predict(
    architecture: Architecture,
    *,
    length: int,
    theory: str = "birth",
    ids: object = None,
    repeat_probability: float = 0.0,
    **options: Any,
) -> Profile:
    r"""The profile that a theory expects of ``architecture`` at ``length`` positions.

    With ``theory="birth"`` (arXiv 2603.10123 extended to second moments; derived here) the values are
    \(\sqrt{E\|J_j\|_F^2}\), \(J_j = \partial h_L/\partial e_j\) before the final norm, of the untrained network:
    absolute, with no fitted parameter. The profile carries a validity card.

    Args:
        architecture: from ``read_config``.
        length: L, positions 0..L-1 in code; 2 to 2^24.
        theory: a name in ``THEORIES``: "birth", "cesaro" (needs ``mixing``), "cesaro-density", "rollout",
            "null".
        ids: token ids of shape (L,), or (n, L) for the root mean square over n windows. Repeated ids matter: with
            1 % equal pairs Qwen2's profile moves by 0.5 dex.
        repeat_probability: in [0, 1), the probability that two positions hold the same id, where no ids are given.
        **options: of the theory; for "birth": ``coupling`` = "strong" | "first-order" | "uniform",
            ``method`` = "auto" | "exact" | "coarse", ``finite_width`` = True | False; for "rollout": ``schedule``,
            ``content``, ``content_unit``, ``temperature``, ``compat``.

    Raises:
        InvalidInput: an argument is out of range, or an unknown name (the message has the nearest one).
        NotApplicable: the theory does not cover this architecture or these tokens.

    Example:
        >>> import catenary as ct
        >>> born = ct.predict(ct.read_config("qwen2-0.5b"), length=2048)
        >>> round(float(born.values[0] / born.values[1023])), round(float(born.values[-1] / born.values[1023]))
        (19, 97)
    """
    if not isinstance(architecture, Architecture):
        raise invalid("architecture", "must be an Architecture", architecture, "read_config(model) makes one")
    if not isinstance(length, int | np.integer) or isinstance(length, bool) or not 2 <= length <= LONGEST:
        raise invalid("length", f"must be a whole number in 2..{LONGEST}", length)
    length = int(length)
    if not isinstance(repeat_probability, int | float | np.number) or not 0 <= float(repeat_probability) < 1:
        raise invalid("repeat_probability", "must be in [0, 1)", repeat_probability)
    law = THEORIES[theory]
    if ids is None:
        with threadpool_limits(*ONE_THREAD):
            profile = law.predict(architecture, length, TokenLaw(None, float(repeat_probability)), options)
        return _stamped(profile, {})
    if repeat_probability:
        raise invalid("repeat_probability", "must be left out where ids are given", repeat_probability)
    windows = _windows(ids, length)
    # Only which positions hold equal ids matters, so windows with one pattern are predicted once.
    patterns, counts = np.unique([_pattern(row) for row in windows], axis=0, return_counts=True)
    with threadpool_limits(*ONE_THREAD), ThreadPoolExecutor(min(len(patterns), os.cpu_count() or 1)) as pool:
        parts = list(pool.map(lambda ids: law.predict(architecture, length, TokenLaw(ids), options), patterns))
    energy = np.average([part.values**2 for part in parts], axis=0, weights=counts)
    most_repeated = min(range(len(parts)), key=lambda k: np.unique(patterns[k]).size)
    profile = replace(parts[most_repeated], values=np.sqrt(energy))
    digest = sha256(np.ascontiguousarray(windows, dtype="<i8").tobytes()).hexdigest()
    known = {**profile.provenance.get("tokens", {}), "windows": len(windows), "patterns": len(parts)}
    return _stamped(profile, {"tokens": known | {"ids_sha256": digest}})


def _stamped(profile: Profile, more: dict[str, Any]) -> Profile:
    versions = {"catenary": catenary.__version__, "numpy": np.__version__, "python": platform.python_version()}
    return replace(profile, provenance={**profile.provenance, **more, "versions": versions})


def _windows(ids: object, length: int) -> Int64[np.ndarray, "n L"]:
    """The ids as (n, L) whole numbers, or the reason why they are not."""
    try:
        array = np.asarray(ids)
    except ValueError:
        raise invalid("ids", f"must have shape ({length},) or (n, {length})", "rows of unequal lengths") from None
    if array.dtype.kind not in "iu":
        raise invalid("ids", "must be whole numbers", f"an array of {array.dtype}")
    if array.ndim not in (1, 2) or array.shape[-1] != length or array.shape[0] == 0:
        raise invalid("ids", f"must have shape ({length},) or (n, {length})", f"shape {array.shape}")
    if (array < 0).any():
        raise invalid("ids", "must be >= 0", int(array.min()))
    return np.atleast_2d(array).astype(np.int64)


def _pattern(row: Int64[np.ndarray, " L"]) -> Int64[np.ndarray, " L"]:
    """The ids renamed 0, 1, 2, ... in order of first appearance."""
    _, first, inverse = np.unique(row, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
