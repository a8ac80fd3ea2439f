"""Measure how much each position's input moves the output at one position: the Jacobian profile of one network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from jaxtyping import Float64, Int

from catenary.errors import InvalidInput, NotApplicable, invalid
from catenary.measure.aim import Aim, Output
from catenary.measure.checks import check_count, chosen_rows, windows_record
from catenary.measure.ends import Ends, check_aim, chosen_positions
from catenary.measure.feed import Feed, prepare
from catenary.measure.methods import Method
from catenary.measure.passes import Passes, Progress
from catenary.measure.precision import PILOT_PROBES, effective_rank, precision, probes_for
from catenary.models.extra import torch
from catenary.models.model import Model, adopt
from catenary.quantity import Quantity
from catenary.sample import Sample
from catenary.text.windows import Windows


def measure_jacobian(
    model: Model | torch.nn.Module,
    windows: Windows | Int[np.ndarray, "n L"],
    *,
    probes: int = 8,
    seed: int = 0,
    method: str = "probes",
    batch_size: int = 1,
    target_error: float | None = None,
    progress: Progress | None = None,
    sequences: Sequence[int] | None = None,
    attention_mask: Int[np.ndarray, "n L"] | None = None,
    recompute: bool = False,
    position: int = -1,
    output: Output = "stream",
    source_layer: int | None = None,
    target_layer: int | None = None,
    relative: bool = False,
) -> Sample:
    r"""Energies \(\|J_j^T v\|^2\) of every position j, window and probe, for one network.

    \(J_j = \partial h_p / \partial e_j\), with h the stream in front of the final norm, p the last position and e the
    embedded tokens. For \(v \sim N(0, I)\), \(E\|J_j^T v\|^2 = \|J_j\|_F^2\). One forward pass is shared by the K
    backward passes, which go to the inputs only. Energies are float64, (1, 1, 1, n, K, p + 1), in units of a squared
    Jacobian norm. Later positions have no influence and no entry.

    Args:
        model: from ``load``, or a transformers module you hold, which is never moved or cast and is left as found.
        windows: token windows, or their ids.
        probes: K, the cotangents per window. The relative error of a norm is 1/sqrt(2Kr), see ``precision``.
        seed: of the probes. Each is a function of (seed, network seed, window index, probe index) alone.
        method: ``probes``; ``exact`` (all d basis cotangents, K = 1 entry without probe error); ``scalar`` (the
            gradient of ||h_L||, its own quantity).
        batch_size: windows per forward pass. Results agree over batch sizes up to rounding.
        target_error: relative error of one norm to reach; a pilot of 4 probes on the first window sets K. For
            untrained networks, since for trained ones the spread over windows is the larger error.
        progress: called after each backward pass with (done, all).
        sequences: which windows to measure, all if None. A part gives the same numbers as the whole.
        attention_mask: 1 on tokens, 0 on padding, rows with equally many tokens. The profile is over tokens only.
        recompute: keep only the inputs of each layer and run it again in every backward pass, see ``recomputing``:
            the same numbers with less memory, in 1 + 2K passes per window in place of 1 + K.
        position: p, from 0, or from the end when negative. The same as the last position of the first p + 1 tokens.
        output: ``stream``; ``logits`` (all of them: v has one entry per vocabulary row); or the id of an answer token,
            one for all windows or one for each, for the gradient of its log-probability, exact in one pass. Each has
            its own quantity.
        source_layer: differentiate with respect to the stream that enters this layer, from 0, in place of e. All
            else that later layers get is held fixed.
        target_layer: the stream that enters this layer (the number of layers: that leaves the last) in place of h.
        relative: multiply norms by the root mean square of one entry of what enters, a quantity of its own.

    Raises:
        InvalidInput: bad arguments, ids outside the vocabulary, windows too long, NaN or inf in the network.
        NotApplicable: Gaussian vectors or ``target_error`` for trained weights, a network that is not causal,
            ``recompute`` for one that cannot run a layer again, or logits of one that has none.

    Source: quantity derived here; ``scalar`` after arXiv 2603.10123.
    """
    (sample,) = measure_positions(
        model, windows, [position], probes=probes, seed=seed, method=method, batch_size=batch_size,
        target_error=target_error, progress=progress, sequences=sequences, attention_mask=attention_mask,
        recompute=recompute, output=output, source_layer=source_layer, target_layer=target_layer, relative=relative,
    )  # fmt: skip
    return sample


def measure_positions(
    model: Model | torch.nn.Module,
    windows: Windows | Int[np.ndarray, "n L"],
    positions: Sequence[int],
    *,
    probes: int = 8,
    seed: int = 0,
    method: str = "probes",
    batch_size: int = 1,
    target_error: float | None = None,
    progress: Progress | None = None,
    sequences: Sequence[int] | None = None,
    attention_mask: Int[np.ndarray, "n L"] | None = None,
    recompute: bool = False,
    output: Output = "stream",
    source_layer: int | None = None,
    target_layer: int | None = None,
    relative: bool = False,
) -> tuple[Sample, ...]:
    """As ``measure_jacobian`` at several output positions, which share each window's forward pass: a Sample for each.

    The Sample of position p has p + 1 entries, and the same numbers as alone. Use it for local profiles.
    """
    held = model if isinstance(model, Model) else adopt(model)
    given = windows if isinstance(windows, Windows) else Windows(np.asarray(windows))
    check_count("probes", probes)
    check_count("batch_size", batch_size)
    check_count("seed", seed, 0)
    feed = prepare(held, given, attention_mask)
    ends = check_aim(feed, Aim(-1, output, source_layer, target_layer, relative))
    chosen, quantity = ends.method(method), ends.aim.quantity(method)
    rows = chosen_rows(sequences, len(given))
    at = chosen_positions(positions, feed.length)
    if target_error is not None:
        probes = _probes_for_target(feed, chosen, ends, seed, rows[0], target_error)
    energies = Passes(feed, chosen, ends, seed, probes, at, recompute).energies(rows, batch_size, progress)
    measurement = {
        **asdict(ends.aim), "output": ends.aim.output if ends.answers is None else list(ends.answers),
        "method": chosen.name, "seed": seed, "batch_size": batch_size, "sequences": rows,
        "target_error": target_error, "embedding_std": held.embedding_std,
    }
    return tuple(
        _sample(feed, quantity, position, energy, chosen.summed, measurement)
        for position, energy in zip(at, energies, strict=True)
    )


def _sample(
    feed: Feed, quantity: Quantity, position: int, energy: Float64[np.ndarray, "n K P"], exact: bool,
    measurement: dict[str, Any],
) -> Sample:  # fmt: skip
    model = feed.model
    last = position == feed.length - 1
    return Sample(
        energy[None, None, None],
        (feed.windows.kind,),
        quantity=quantity,
        label=model.label if last else f"{model.label}, position {position}",
        exact=exact,
        provenance={
            "model": model.provenance(),
            "windows": windows_record(feed.windows, feed),
            "measurement": {
                **measurement, "position": position, "probes": energy.shape[1],
                "precision": precision(energy, exact=exact).to_dict(),
            },
        },
    )


def _probes_for_target(feed: Feed, method: Method, ends: Ends, seed: int, row: int, target_error: float) -> int:
    """K that reaches the target, from a pilot on one window."""
    if method.name != "probes":
        raise invalid("target_error", "applies to method 'probes'", target_error, f"leave it out with {method.name!r}")
    if feed.model.weights != "untrained":
        raise NotApplicable(
            f"target_error picks probes for untrained networks, got {feed.model.label!r} ({feed.model.weights}); for a "
            "trained network the spread over windows is the larger error: leave target_error out, and measure more "
            "windows with probes=1 until `sample.profile('log').standard_error` is small enough"
        )
    pilot = Passes(feed, method, ends, seed, PILOT_PROBES, [feed.length - 1])
    rank = effective_rank(pilot.energies([row], 1)[0])
    if rank is None:
        raise InvalidInput("target_error must be reachable by probes, but the pilot's probes all agree; set probes")
    needed, width = probes_for(target_error, rank), ends.width(feed.model)
    if needed >= width:
        raise invalid(
            "target_error", f"must be reachable with fewer probes than the width {width}", target_error,
            f"it needs {needed}; method='exact' has no probe error and costs {width}",
        )
    return needed
