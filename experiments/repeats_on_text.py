"""The law of repeated tokens against untrained SmolLM2-135M on real text, by class of equally frequent tokens.

    python experiments/repeats_on_text.py .cache/demo --networks 16 --windows 2

Prints, per condition, log10 of predicted over measured root mean square for tokens seen once, 2 to 5 times, more often,
and the last one, each with the standard error over networks. About 6 s per network and window on two cores.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from transformers import AutoTokenizer

import catenary as ct

LENGTH = 512


def main() -> None:
    """Measure, predict, compare by class."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--networks", type=int, default=16)
    parser.add_argument("--windows", type=int, default=2)
    options = parser.parse_args()
    model = options.folder / "smollm2-135m"
    windows = ct.vanilla_windows(
        ct.read_documents(str(options.folder / "documents")), AutoTokenizer.from_pretrained(model),
        length=LENGTH, count=options.networks * options.windows, seed=0,
    ).ids
    architecture = ct.read_config(model)
    errors: dict[str, list[float]] = {}
    measured, predicted, kinds = [], [], []
    for net in range(options.networks):
        print(f"network {net + 1} of {options.networks}", file=sys.stderr, flush=True)
        network = ct.load(model, weights="untrained", seed=net)
        chosen = range(net * options.windows, (net + 1) * options.windows)
        for window in chosen:
            ids = windows[window]
            energy = ct.measure_jacobian(network, ids[None], probes=1, seed=window).energy[0, 0, 0, 0, 0]
            law = ct.predict(architecture, length=LENGTH, ids=ids).values ** 2
            measured.append(energy)
            predicted.append(law)
            kinds.append(classes(ids))
    seen, law, kind = np.array(measured), np.array(predicted), np.array(kinds)
    for name in ("once", "2-5", ">5", "last"):
        inside = kind == name
        per_net = [
            (seen[a:b][inside[a:b]].mean(), law[a:b][inside[a:b]].mean())
            for a, b in ((n * options.windows, (n + 1) * options.windows) for n in range(options.networks))
        ]
        ratio = 0.5 * np.log10(law[inside].mean() / seen[inside].mean())
        spread = np.std([m / p for m, p in per_net], ddof=1) / np.sqrt(options.networks)
        errors[name] = [round(float(ratio), 4), round(float(spread / (2 * np.log(10))), 4)]
    print(json.dumps({"networks": options.networks, "windows": len(seen), "log10 law/measured (se)": errors}, indent=1))


def classes(ids: np.ndarray) -> list[str]:
    """The class of every position: how often its token occurs in the window, the last position apart."""
    _, inverse, counts = np.unique(ids, return_inverse=True, return_counts=True)
    names = ["once" if c == 1 else "2-5" if c <= 5 else ">5" for c in counts[inverse]]
    return [*names[:-1], "last"]


if __name__ == "__main__":
    main()
