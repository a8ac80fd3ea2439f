"""``predict``: arguments, choice of method, windows of ids, validity card and provenance of the birth law."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import catenary as ct
from builders import gpt2_like, qwen2_like, smollm2_like
from catenary.architecture import Alibi, HeadGroup
from catenary.errors import InvalidInput, NotApplicable
from catenary.page.view import cards
from catenary.quantity import JACOBIAN_NORM
from catenary.theory import birth_law
from catenary.theory.birth import exact_energies
from catenary.theory.card import Regime, birth_card, token_spread
from catenary.theory.coarse import coarse_energies
from catenary.theory.embedding import embedded
from catenary.theory.repeats.law import repeated_energies
from catenary.theory.repeats.long import long_energies
from catenary.theory.theories import THEORIES

SMALL = qwen2_like(width=64, depth=2, heads=4, kv_heads=2, head_dim=16, ffn=96)


def test_values_are_norms() -> None:
    profile = ct.predict(SMALL, length=20)
    energies = exact_energies(SMALL, embedded(SMALL, np.eye(20)))
    np.testing.assert_allclose(profile.values, np.sqrt(64 * energies), rtol=1e-14)
    assert profile.quantity is JACOBIAN_NORM
    assert (profile.label, profile.average) == ("predicted at birth", "expectation")


def test_known_norms_of_qwen2() -> None:
    # ||J_j||_F of Qwen2-0.5B at L = 512: sqrt(896 * energy) of the golden file's first, middle and last entries.
    profile = ct.predict(qwen2_like(), length=512)
    expected = np.sqrt(896 * np.array([3769.950178186968, 34.18083329107094, 17832.004105406137]))
    np.testing.assert_allclose(profile.values[[0, 255, 511]], expected, rtol=1e-4)


def test_auto_is_exact_up_to_512() -> None:
    def method(**arguments: Any) -> str:
        return str(ct.predict(SMALL, **arguments).provenance["options"]["method"])

    assert method(length=512) == "exact"
    assert method(length=513) == "coarse"
    assert method(length=513, ids=np.arange(513)) == "coarse"
    assert method(length=513, ids=np.arange(513), coupling="first-order") == "exact"
    assert method(length=100, method="coarse") == "coarse"
    values = ct.predict(SMALL, length=700, repeat_probability=0.01).values
    np.testing.assert_allclose(values, np.sqrt(64 * coarse_energies(SMALL, 700, 0.01)), rtol=1e-14)


def test_which_law_ids_get() -> None:
    """Distinct ids the strong law, repeated ones that of repeats, and the pair rate where that does not reach."""
    ids = np.arange(96) % 60
    known = ct.predict(SMALL, length=96, ids=ids)
    np.testing.assert_array_equal(known.values, np.sqrt(64 * repeated_energies(SMALL, ids)))
    coarse = ct.predict(SMALL, length=96, ids=ids, method="coarse")
    np.testing.assert_array_equal(coarse.values, np.sqrt(64 * long_energies(SMALL, ids)))
    distinct = ct.predict(SMALL, length=96, ids=np.arange(96), method="coarse")
    np.testing.assert_array_equal(distinct.values, ct.predict(SMALL, length=96, method="coarse").values)
    laws = [p.provenance["tokens"]["law"] for p in (known, coarse, distinct)]
    assert laws == ["repeated", "repeated", "distinct"]
    assert known.card is not None
    assert "Repeated tokens and RoPE are in it" in " ".join(known.card.statements)

    layer = SMALL.layers[0].with_mixers(
        replace(SMALL.layers[0].attention, groups=(HeadGroup(SMALL.layers[0].attention.heads, Alibi(0.1)),))
    )
    sloped = replace(SMALL, layers=(layer,) * 2)
    for method in ("exact", "coarse"):
        profile = ct.predict(sloped, length=96, ids=ids, method=method)
        assert profile.provenance["tokens"]["law"] == "pairs"
        assert profile.card is not None
        assert "was not used: the law of repeated tokens" in " ".join(profile.card.statements)
    rate = 36 * 2 / (96 * 95)
    same = ct.predict(sloped, length=96, repeat_probability=rate, method="coarse")
    np.testing.assert_allclose(profile.values, same.values, rtol=1e-12)


def test_windows_are_averaged_as_squares() -> None:
    ids = np.array([[5, 5, 9, 9, 5, 1], [0, 1, 2, 3, 4, 5], [7, 7, 8, 8, 7, 2]])
    both = ct.predict(SMALL, length=6, ids=ids)
    first, second = (ct.predict(SMALL, length=6, ids=row).values for row in ids[:2])
    # The third window has the pattern of the first.
    np.testing.assert_allclose(both.values**2, (2 * first**2 + second**2) / 3, rtol=1e-13)
    assert (both.provenance["tokens"]["windows"], both.provenance["tokens"]["patterns"]) == (3, 2)
    assert not np.allclose(first, second, rtol=0.01)


def test_only_equality_of_ids_matters() -> None:
    a = ct.predict(SMALL, length=6, ids=[5, 5, 9, 9, 5, 1])
    b = ct.predict(SMALL, length=6, ids=np.array([[700, 700, 2, 2, 700, 3]], dtype=np.uint32))
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(ct.predict(SMALL, length=6, ids=range(6)).values, ct.predict(SMALL, length=6).values)


def test_repeats_change_the_profile_and_a_repeat_probability_stands_for_them() -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 20, (40, 64))
    with_ids = ct.predict(qwen2_like(depth=4), length=64, ids=ids)
    with_probability = ct.predict(qwen2_like(depth=4), length=64, repeat_probability=1 / 20)
    none = ct.predict(qwen2_like(depth=4), length=64)
    gap = np.abs(np.log10(with_ids.values / with_probability.values))
    assert np.median(gap) < 0.03 < np.median(np.abs(np.log10(with_ids.values / none.values)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length": 1}, r"length must be a whole number in 2\.\.16777216, got 1"),
        ({"length": 2.0}, "length must be a whole number"),
        ({"length": True}, "length must be a whole number"),
        ({"length": 1 << 25}, "length must be a whole number"),
        ({"length": 8, "theory": "birht"}, "unknown theory 'birht'. Did you mean 'birth'"),
        ({"length": 8, "coupling": "first"}, "unknown coupling 'first'. Did you mean 'first-order'"),
        ({"length": 8, "method": "exakt"}, "unknown method 'exakt'. Did you mean 'exact'"),
        ({"length": 8, "finite_width": 1}, "finite_width must be True or False, got 1"),
        ({"length": 8, "copling": "strong"}, "Did you mean 'coupling'"),
        ({"length": 8, "repeat_probability": 1.0}, r"repeat_probability must be in \[0, 1\), got 1.0"),
        ({"length": 8, "repeat_probability": float("nan")}, r"repeat_probability must be in \[0, 1\), got nan"),
        ({"length": 8, "repeat_probability": "a"}, "repeat_probability must be"),
        ({"length": 8, "ids": np.arange(7)}, r"ids must have shape \(8,\) or \(n, 8\), got 'shape \(7,\)'"),
        ({"length": 8, "ids": [[1], [2, 3]]}, "rows of unequal lengths"),
        ({"length": 8, "ids": np.zeros((0, 8), dtype=int)}, "ids must have shape"),
        ({"length": 8, "ids": np.linspace(0, 1, 8)}, "ids must be whole numbers"),
        ({"length": 8, "ids": np.arange(-1, 7)}, "ids must be >= 0, got -1"),
        ({"length": 8, "ids": np.arange(8), "repeat_probability": 0.1}, "must be left out where ids are given"),
        ({"length": 8, "ids": np.arange(8), "method": "coarse", "coupling": "uniform"}, "strong coupling only"),
        ({"length": 30_000, "method": "exact"}, "use method='coarse'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ct.predict(SMALL, **arguments)


def test_an_architecture_is_needed_and_its_activation_must_be_known() -> None:
    with pytest.raises(InvalidInput, match="read_config"):
        ct.predict("qwen2", length=8)  # type: ignore[arg-type]
    layer = SMALL.layers[0].with_mixers(feed_forward=replace(SMALL.layers[0].feed_forward, activation="relu6"))
    with pytest.raises(NotApplicable, match="'relu6'"):
        ct.predict(replace(SMALL, layers=(layer,)), length=8)


def test_every_theory_is_registered_by_importing_predict() -> None:
    assert {"birth", "cesaro", "cesaro-density", "null"} <= set(THEORIES)


def test_couplings_and_labels() -> None:
    profiles = [ct.predict(smollm2_like(depth=3), length=64, coupling=c) for c in ("strong", "first-order", "uniform")]
    assert [p.label for p in profiles] == [
        "predicted at birth", "predicted at birth, first-order coupling", "predicted at birth, uniform coupling",
    ]
    strong, first, uniform = (p.values for p in profiles)
    assert np.abs(np.log10(strong / first)).max() > 0.02
    assert np.abs(np.log10(first / uniform)).max() > 0.02


def test_provenance_is_json_and_says_what_was_done() -> None:
    profile = ct.predict(gpt2_like(depth=3), length=16, ids=[0] * 8 + [1] * 8)
    said = json.loads(json.dumps(dict(profile.provenance)))
    assert said == dict(profile.provenance)
    assert said["theory"] == "birth"
    assert said["options"] == {"coupling": "strong", "method": "exact", "finite_width": True}
    assert said["architecture"]["layers"][0]["count"] == 3
    assert said["architecture"]["width"] == 768
    assert len(said["tokens"]["ids_sha256"]) == 64
    assert set(said["versions"]) == {"catenary", "numpy", "python"}


# --- validity card --------------------------------------------------------------------------------------------


def card(
    variance: float, length: int = 256, width: int = 256, coupling: str = "strong", tokens: Any = "distinct"
) -> Any:
    std = (variance**0.5 / width) ** 0.5
    architecture = replace(
        qwen2_like(width=width, depth=1, std=std), assumed=("rms_norm_eps = 1e-6",), not_expressed=("soft-capping",)
    )
    return birth_card(architecture, Regime(length, coupling, tokens))


def test_expected_error_by_regime() -> None:
    assert card(0.5).logit_variance == pytest.approx(0.5)
    assert card(0.5).expected_median_error == 0.02
    assert card(2.7).expected_median_error == 0.05
    assert card(12.0).expected_median_error is None
    assert card(0.5, length=2048).expected_median_error is None
    assert card(0.3, tokens="pairs").expected_median_error == 0.03
    assert card(2.0, tokens="pairs").expected_median_error == 0.17
    assert card(1.0, tokens="repeated").expected_median_error == 0.03
    assert card(2.0, tokens="repeated").expected_median_error == 0.04
    assert card(2.0, coupling="first-order").expected_median_error == 0.2
    assert card(2.0, coupling="uniform").expected_median_error is None


def test_what_is_approximate_is_promised_no_error_measured_on_other_types() -> None:
    whole = qwen2_like(width=256, depth=1, std=0.02)
    part = replace(whole, not_expressed=("approximate: gates are left out",))
    regime = Regime(256, "strong", "distinct")
    assert birth_card(whole, regime).expected_median_error == 0.02
    assert birth_card(whole, regime).light == "green"
    found = birth_card(part, regime)
    assert (found.expected_median_error, found.light) == (None, "amber")
    assert "gates are left out" in found.sentence
    assert not any("median error of log10 at most" in statement for statement in found.statements)


def test_token_spread_passes_through_what_was_measured() -> None:
    for variance, spread in ((0.13, 0.12), (0.36, 0.17), (0.85, 0.24), (1.64, 0.30), (2.7, 0.32), (6.25, 0.35)):
        assert token_spread(variance) == pytest.approx(spread)
    assert token_spread(1e-4) == 0.12
    assert token_spread(20.0) is None


def test_the_card_says_where_to_stop() -> None:
    text = " ".join(card(2.0, length=2048, tokens="pairs").statements)
    assert "Length/width is 8" in text
    assert "last token is up to 0.2 dex too high" in text
    assert "pool at least 100" in text
    assert "never measured" in " ".join(card(12.0).statements)
    assert card(0.2).assumed == ("rms_norm_eps = 1e-6",)
    assert card(0.2).not_expressed == ("soft-capping",)


def test_the_card_of_a_long_prediction_gives_the_size_of_the_finite_width_term() -> None:
    finite = ct.predict(SMALL, length=600)
    infinite = ct.predict(SMALL, length=600, finite_width=False)
    size = np.abs(np.log10(finite.values / infinite.values)).max()
    assert finite.card is not None
    assert f"moves the profile by up to {size:.2g} dex" in " ".join(finite.card.statements)


def test_a_long_prediction_is_not_said_to_be_measured_and_runs_no_recursion_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran = []

    def counted(*given: Any, **named: Any) -> Any:
        ran.append((given, named))
        return coarse_energies(*given, **named)

    monkeypatch.setattr(birth_law, "coarse_energies", counted)
    wide = gpt2_like(width=64, depth=1)
    long, short = (ct.predict(wide, length=length, method="coarse").card for length in (300, 200))
    assert long is not None
    assert short is not None
    assert (long.light, short.light) == ("green", "green")
    assert short.sentence.startswith("Measured in this regime")
    assert "the law was not measured" in long.sentence
    assert len(ran) == 3  # the long one with and without its finite-width term, and the short one


def test_the_card_of_a_network_without_attention_speaks_of_no_logits() -> None:
    architecture = ct.read_config({"model_type": "mamba", "hidden_size": 16, "num_hidden_layers": 1, "state_size": 4})
    for options in ({"theory": "birth"}, {"theory": "null"}, {"theory": "cesaro", "mixing": 0.1}):
        card = ct.predict(architecture, length=16, **options).card  # type: ignore[arg-type]
        assert card is not None
        assert card.logit_variance is None
        assert card.token_spread is None
        assert "logit" not in " ".join(card.statements)
    born = ct.predict(architecture, length=16)
    assert "No layer has attention" in " ".join(born.card.statements if born.card else ())
    assert dict(cards([born])[0].lines)["attention-logit variance at birth"] == "no layer has attention"
    assert architecture.describe().endswith("no attention")
    assert "logit variance" in gpt2_like(depth=1).describe()


def test_the_norm_behind_a_residual_sum_is_named() -> None:
    config = {"model_type": "opt", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "ffn_dim": 64}
    assert "layer norm" in ct.read_config({**config, "do_layer_norm_before": False}).describe()


def test_learned_positions_bound_the_length() -> None:
    architecture = replace(gpt2_like(depth=1), max_length=64)
    profile = ct.predict(architecture, length=65)
    assert profile.card is not None
    assert "64 learned positions" in " ".join(profile.card.statements)


def test_a_window_that_bites_bends_the_profile_and_one_that_does_not_changes_nothing() -> None:
    config = {
        "model_type": "mistral", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 4, "sliding_window": 256, "max_position_embeddings": 256,
    }  # fmt: skip
    windowed, full = ct.read_config(config), ct.read_config({**config, "sliding_window": None})
    short = [ct.predict(a, length=256, method="exact").values for a in (windowed, full)]
    np.testing.assert_allclose(short[0], short[1], rtol=1e-12)
    long = ct.predict(windowed, length=600, method="exact").values
    reach = 600 - 2 * 255
    assert (long[: reach - 1] == 0).all()
    assert (long[reach - 1 :] > 0).all()


def test_attention_that_the_data_chooses_is_predicted_as_far_as_it_sees_all() -> None:
    architecture = replace(gpt2_like(depth=1), causal_up_to=256)
    assert ct.predict(architecture, length=256).length == 256
    with pytest.raises(NotApplicable, match="length must be at most 256"):
        ct.predict(architecture, length=257)


def test_a_law_takes_one_blas_thread_and_gives_the_rest_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from threadpoolctl import threadpool_info, threadpool_limits

    seen: list[int] = []
    law = THEORIES["birth"]

    def threads() -> int:
        return max(part["num_threads"] for part in threadpool_info() if part["user_api"] == "blas")

    class Watched:
        def predict(self, *arguments: object) -> object:
            seen.append(threads())
            return law.predict(*arguments)

    monkeypatch.setitem(THEORIES._entries, "birth", Watched())
    architecture, rows = ct.read_config("preset:toy"), np.tile(np.arange(16), (3, 1))
    rows[1, 5], rows[2, 9] = 0, 0
    with threadpool_limits(2, "blas"):
        ct.predict(architecture, length=16, ids=rows)
        ct.predict(architecture, length=16)
        assert threads() == 2
    assert seen == [1, 1, 1, 1]
