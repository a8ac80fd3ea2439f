"""Typed, checked, alias-aware access to one config; it remembers what was read, what was left out, what was odd."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from numbers import Integral, Real

from catenary.configs.class_facts import ClassFacts
from catenary.configs.received import received
from catenary.errors import InvalidInput, invalid, unknown

TEXT_LIMIT = 200
"""Characters. Names in configs (activations, types) are short; longer ones would only slow the near-match search."""


LIST_LIMIT = 100_000
"""Entries of a list in a config; published ones name layers, of which there are hundreds."""

SHAPE = (
    "num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "ffn_dim", "decoder_layers",
    "decoder_attention_heads", "decoder_ffn_dim",
)  # fmt: skip
"""Fields that decide what model it is: left out, transformers would silently build its class's default model."""


class Fields:
    """One config as a family reads it.

    ``facts`` holds what transformers' config class takes for a field that is left out, and the class's own names for
    common fields: a family asks for ``num_hidden_layers`` and finds GPT-2's ``n_layer``. A field that is neither in
    the config nor in the class is required, and so are the fields of ``SHAPE``, except in the text part of a larger
    model (``sparse``), which is published without the class's defaults. Every accessor takes the field's name and
    further aliases, raises ``InvalidInput`` naming the field, and records:

    - ``assumed``: one line for each field that was left out, with the value taken;
    - ``notes``: one line for each statement of the config that the description cannot hold;
    - ``read``: the names looked up so far.
    """

    def __init__(
        self, config: Mapping[str, object], family: str, facts: ClassFacts | None = None, *, sparse: bool = False
    ) -> None:
        """Wrap ``config``; nothing is checked before it is asked for."""
        facts = facts or ClassFacts()
        self.family = family
        self.theta: float | Mapping[str, float] = facts.theta
        self.read: set[str] = set()
        self._config = config
        self._names = facts.names
        required = () if sparse else tuple(facts.names.get(name, name) for name in SHAPE)
        self._defaults = {
            name: value for name, value in facts.defaults.items() if name not in required or value is None
        }
        self._assumed: dict[str, str] = {}
        self._notes: list[str] = []

    @property
    def assumed(self) -> tuple[str, ...]:
        """One line for each field left out: its name and the value taken."""
        return tuple(self._assumed.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """What the config says that an Architecture cannot hold, one line each."""
        return tuple(self._notes)

    def assume(self, name: str, value: object, reason: str) -> None:
        """Record that ``name`` was taken to be ``value`` because of ``reason``."""
        self._assumed[name] = f"{name} = {value} ({reason})"

    def note(self, text: str) -> None:
        """Record something the config says that an Architecture cannot hold."""
        if text not in self._notes:
            self._notes.append(text)

    def has(self, name: str) -> bool:
        """Whether the config gives ``name`` a value other than null."""
        keys = self._keys(name, ())
        return any(self._config.get(key) is not None for key in keys)

    def knows(self, name: str) -> bool:
        """Whether the config has ``name``, null or not, or its class does."""
        keys = self._keys(name, ())
        return any(key in self._config or key in self._defaults for key in keys)

    def raw(self, name: str) -> object:
        """The value of ``name`` as it stands, null or left out as None; for fields that may be of several types."""
        return None if self._absent(name, ()) else self._value(name, ())

    def own_name(self, name: str) -> str:
        """What the config class itself calls the common field ``name``."""
        return self._names.get(name, name)

    def given_name(self, name: str, aliases: tuple[str, ...] = ()) -> str:
        """What the config at hand calls the field, or else its class: the name that its reader can look for."""
        keys = self._keys(name, aliases)
        return next((key for key in keys if key in self._config), keys[0])

    def integer(self, name: str, *aliases: str, most: int, least: int = 1) -> int:
        """An integer in least..most; booleans, strings and floats are refused."""
        value = self._value(name, aliases)
        number = _integer(value)
        if number is None or not least <= number <= most:
            raise invalid(self.given_name(name, aliases), f"must be an integer in {least}..{most}", received(value))
        return number

    def optional_integer(self, name: str, *aliases: str, most: int, least: int = 1) -> int | None:
        """An integer in least..most, or None where the config says null or leaves it out and so does the class."""
        return None if self._absent(name, aliases) else self.integer(name, *aliases, most=most, least=least)

    def number(self, name: str, *aliases: str, most: float, least: float = 0.0) -> float:
        """A finite number in [least, most]; booleans, strings, NaN and infinities are refused."""
        value = self._value(name, aliases)
        number = _real(value)
        if number is None or not least <= number <= most:  # false for NaN, whatever the bounds
            raise invalid(self.given_name(name, aliases), f"must be a number in [{least:g}, {most:g}]", received(value))
        return number

    def optional_number(self, name: str, *aliases: str, most: float, least: float = 0.0) -> float | None:
        """A finite number in [least, most], or None where it is null or left out."""
        return None if self._absent(name, aliases) else self.number(name, *aliases, most=most, least=least)

    def boolean(self, name: str) -> bool:
        """True or false; 0, 1 and strings are refused."""
        value = self._value(name, ())
        if not isinstance(value, bool):
            raise invalid(name, "must be true or false", received(value))
        return value

    def flag(self, name: str) -> bool:
        """True or false, false where it is null or left out and the class says neither."""
        return not self._absent(name, ()) and self.boolean(name)

    def text(self, name: str, *aliases: str) -> str:
        """A string of at most ``TEXT_LIMIT`` characters."""
        value = self._value(name, aliases)
        if not isinstance(value, str) or len(value) > TEXT_LIMIT:
            raise invalid(name, f"must be a text of at most {TEXT_LIMIT} characters", received(value))
        return value

    def choice(self, name: str, *aliases: str, known: Collection[str]) -> str:
        """One of ``known``; anything else is refused with the nearest name."""
        value = self.text(name, *aliases)
        if value not in known:
            raise unknown(name, value, known)
        return value

    def optional_texts(self, name: str, *, count: int) -> tuple[str, ...] | None:
        """A list of exactly ``count`` strings, or None where it is null or left out."""
        if self._absent(name, ()):
            return None
        value = self._value(name, ())
        if not isinstance(value, list | tuple) or len(value) != count:
            raise invalid(name, f"must be a list of {count} names, one per layer", received(value))
        for entry in value:
            if not isinstance(entry, str):
                raise invalid(name, "must be a list of names", received(entry))
        return tuple(value)

    def optional_list(self, name: str) -> tuple[object, ...] | None:
        """A list of anything, or None where it is null or left out."""
        if self._absent(name, ()):
            return None
        value = self._value(name, ())
        if not isinstance(value, list | tuple):
            raise invalid(name, "must be a list or null", received(value))
        return tuple(value)

    def optional_integers(self, name: str, *, count: int, most: int, least: int = 0) -> tuple[int, ...] | None:
        """A list of exactly ``count`` integers in least..most, or None where it is null or left out."""
        if self._absent(name, ()):
            return None
        value = self._value(name, ())
        if not isinstance(value, list | tuple) or len(value) != count:
            raise invalid(name, f"must be a list of {count} integers, one per layer", received(value))
        numbers = [_integer(int(entry) if isinstance(entry, bool) else entry) for entry in value]
        for entry, number in zip(value, numbers, strict=True):
            if number is None or not least <= number <= most:
                raise invalid(name, f"must be a list of integers in {least}..{most}", received(entry))
        return tuple(number for number in numbers if number is not None)

    def optional_indices(self, name: str, *, most: int, least: int = 0) -> tuple[int, ...] | None:
        """A list of any number of integers in least..most, or None where it is null or left out."""
        if self._absent(name, ()):
            return None
        value = self._value(name, ())
        if not isinstance(value, list | tuple) or len(value) > LIST_LIMIT:
            raise invalid(name, f"must be a list of at most {LIST_LIMIT} integers", received(value))
        return self.optional_integers(name, count=len(value), most=most, least=least)

    def optional_numbers(
        self, name: str, *, count: int, most: float, least: float = 0.0
    ) -> tuple[float, ...] | None:
        """A list of exactly ``count`` numbers in [least, most], or None where it is null or left out."""
        if self._absent(name, ()):
            return None
        value = self._value(name, ())
        if not isinstance(value, list | tuple) or len(value) != count:
            raise invalid(name, f"must be a list of {count} numbers, one per layer", received(value))
        numbers = [_real(entry) for entry in value]
        for entry, number in zip(value, numbers, strict=True):
            if number is None or not least <= number <= most:
                raise invalid(name, f"must be a list of numbers in [{least:g}, {most:g}]", received(entry))
        return tuple(number for number in numbers if number is not None)

    def optional_part(self, name: str) -> Fields | None:
        """A nested object as fields of its own (without defaults), or None where it is null, empty or left out."""
        self.read.add(name)
        value = self._config.get(name)
        if value is None or value == {}:
            return None
        if not isinstance(value, Mapping):
            raise invalid(name, "must be an object or null", received(value))
        return Fields(value, f"{self.family} {name}")

    def _absent(self, name: str, aliases: tuple[str, ...]) -> bool:
        keys = self._keys(name, aliases)
        given = any(self._config.get(key) is not None for key in keys)
        default = None if any(key in self._config for key in keys) else self._defaults.get(keys[0])
        return not given and default is None

    def _keys(self, name: str, aliases: tuple[str, ...]) -> tuple[str, ...]:
        """The names to look under, the class's own first, then those that the class maps to it."""
        own = self.own_name(name)
        mapped = (alias for alias, target in self._names.items() if target == own)
        keys = tuple(dict.fromkeys((own, name, *mapped, *aliases)))
        self.read.update(keys)
        return keys

    def _value(self, name: str, aliases: tuple[str, ...]) -> object:
        """The value under ``name`` or one of its aliases, else the class default, else a refusal."""
        keys = self._keys(name, aliases)
        name = keys[0]
        present = [key for key in keys if key in self._config]
        values = [self._config[key] for key in present]
        if any(type(value) is not type(values[0]) or value != values[0] for value in values[1:]):
            pair = " and ".join(f"{key}={received(value)}" for key, value in zip(present, values, strict=True))
            raise InvalidInput(f"{name} must have one value, got {pair}; {self.family} reads them as one field")
        if values:
            return values[0]
        if name in self._defaults:
            self.assume(name, received(self._defaults[name]), f"left out; the default of transformers' {self.family}")
            return self._defaults[name]
        raise InvalidInput(f"{name} is missing; {self.family} needs it{self._other_spelling(name)}")

    def _other_spelling(self, name: str) -> str:
        for spellings in SPELLINGS:
            found = [key for key in spellings if key in self._config] if name in spellings else []
            if found:
                return f", and transformers' {self.family} does not read {found[0]!r}: rename it to {name!r}"
        return ""


SPELLINGS: tuple[tuple[str, ...], ...] = (
    ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers"),
    ("hidden_size", "n_embd", "d_model", "dim", "n_embed", "model_dim", "embedding_dim"),
    ("num_attention_heads", "n_head", "n_heads", "num_heads", "num_query_heads"),
    ("num_key_value_heads", "n_kv_heads", "n_head_kv", "num_kv_heads"),
    ("intermediate_size", "n_inner", "ffn_dim", "d_ff", "hidden_dim", "ffn_hidden_size"),
    ("vocab_size", "n_vocab", "vocabulary_size"),
)
"""Names that published configs use for one thing; used only to explain a missing field, never to fill it."""


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, Integral):
        return None
    return int(value)


def _real(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
