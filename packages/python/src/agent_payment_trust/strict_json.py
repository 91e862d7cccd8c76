"""JSON that every program reads the same way, and its canonical form (RFC 8785)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import rfc8785

from .errors import Refusal

Json: TypeAlias = Any
JsonObject: TypeAlias = Mapping[str, Any]

_MAX_DEPTH = 64
_MAX_SAFE_INTEGER = 2**53 - 1
_SIGNED_NUMBERS = "not strict JSON: a signed number must be a whole number of at most 53 bits"


def parse_strict_json(source: str | bytes) -> Json:
    """Parse JSON in the form of signed documents.

    Refuses repeated members, fractions, numbers over 53 bits, unpaired surrogates, a byte order mark, and more than 64
    levels.

    :raises Refusal: ``malformed_json`` or ``duplicate_key``
    """
    return _parse(source, _signed_whole, _refuse_fraction)


def parse_unsigned_json(source: str | bytes) -> Json:
    """Parse the same JSON with any number that a double can represent.

    :raises Refusal: ``malformed_json`` or ``duplicate_key``
    """
    return _parse(source, _any_number, _double)


def jcs(value: Json) -> bytes:
    """Return the RFC 8785 form of parsed JSON."""
    return rfc8785.dumps(value)


def _parse(source: str | bytes, whole: Callable[[str], Json], fraction: Callable[[str], Json]) -> Json:
    try:
        value = json.loads(
            source if isinstance(source, str) else source.decode("utf-8"),
            object_pairs_hook=_members,
            parse_int=whole,
            parse_float=fraction,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError:
        raise Refusal("malformed_json", "not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise Refusal("malformed_json", f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise _too_deep() from None
    _check(value, 0)
    return value


def _members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    raise Refusal("duplicate_key", "an object contains a duplicate member: programs would read different documents")


def _signed_whole(text: str) -> int:
    if text == "-0" or len(text) > 17 or abs(int(text)) > _MAX_SAFE_INTEGER:
        raise Refusal("malformed_json", _SIGNED_NUMBERS)
    return int(text)


def _refuse_fraction(_text: str) -> Json:
    raise Refusal("malformed_json", _SIGNED_NUMBERS)


def _any_number(text: str) -> int | float:
    is_exact = text != "-0" and len(text) <= 17 and abs(int(text)) <= _MAX_SAFE_INTEGER
    return int(text) if is_exact else _double(text)


def _double(text: str) -> float:
    value = float(text)
    if math.isfinite(value):
        return value
    raise Refusal("malformed_json", "not strict JSON: a number is too large for a double")


def _refuse_constant(name: str) -> Json:
    raise Refusal("malformed_json", f"not JSON: {name} is not a JSON value")


def _check(value: Json, depth: int) -> None:
    if isinstance(value, str):
        _refuse_halves(value)
    elif isinstance(value, (dict, list)):
        if depth > _MAX_DEPTH:
            raise _too_deep()
        if isinstance(value, dict):
            for name in value:
                _refuse_halves(name)
        for part in value.values() if isinstance(value, dict) else value:
            _check(part, depth + 1)


def _refuse_halves(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal("malformed_json", "not strict JSON: unpaired surrogate") from None


def _too_deep() -> Refusal:
    return Refusal("malformed_json", f"not strict JSON: more than {_MAX_DEPTH} levels")
