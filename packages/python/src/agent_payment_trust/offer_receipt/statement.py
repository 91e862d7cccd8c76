"""A seller's signed statement, parsed. None of it has been verified."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from ..encodings import from_base64url
from ..errors import InputError, Refusal, quote
from ..issuer import origin_of
from ..strict_json import Json, JsonObject, parse_strict_json

#: The members of each payload, a string or a whole number, in the order in which they are signed (version 1).
MEMBERS: dict[str, dict[str, type]] = {
    "offer": {
        "version": int,
        "resourceUrl": str,
        "scheme": str,
        "network": str,
        "asset": str,
        "payTo": str,
        "amount": str,
        "validUntil": int,
    },
    "receipt": {
        "version": int,
        "network": str,
        "resourceUrl": str,
        "payer": str,
        "issuedAt": int,
        "transaction": str,
    },
}
_MAX_SAFE_INTEGER = 2**53 - 1


@dataclass(frozen=True)
class Statement:
    """A signed offer or receipt."""

    format: Literal["jws", "eip712"]
    #: The compact JWS, or the EIP-712 signature in hex.
    signature: str
    payload: JsonObject
    #: The key that a JWS names.
    kid: str = ""


def read_statement(kind: str, signed: Json) -> Statement:
    """Read ``{format: "jws", signature}`` or ``{format: "eip712", payload, signature}``.

    :param kind: ``offer`` or ``receipt``
    :raises InputError: for another form, a JWS with an extra payload, and a resource whose URL contains a user name,
        because both can pass off unsigned text as signed
    """
    if not isinstance(signed, dict):
        raise InputError(f"The {kind} is not a JSON object.")
    form, signature = signed.get("format"), signed.get("signature")
    if not isinstance(signature, str):
        raise InputError(f"The {kind} has no signature.")
    if form == "eip712":
        return Statement("eip712", signature, _read_payload(kind, signed.get("payload")))
    if form != "jws":
        raise InputError(f"The {kind} has the format {quote(form)}; expected jws or eip712.")
    if "payload" in signed:
        raise InputError(f"The {kind} has a payload next to its JWS, which is not signed.")
    if not re.fullmatch(r"[\w-]+\.[\w-]+\.[\w-]+", signature, re.ASCII):
        raise InputError(f"The {kind}'s JWS is not three parts in base64url, separated by dots.")
    header, payload, _ = signature.split(".")
    members = _decode(kind, header)
    if "crit" in members:
        raise InputError(f"The {kind}'s JWS requires extensions: crit is {quote(members['crit'])}.")
    if not isinstance(members.get("kid"), str):
        raise InputError(f"The {kind}'s JWS names no key: its header has no kid.")
    return Statement("jws", signature, _read_payload(kind, _decode(kind, payload)), members["kid"])


def _decode(kind: str, part: str) -> JsonObject:
    data = from_base64url(part)
    try:
        value = None if data is None else parse_strict_json(data)
    except Refusal as refusal:
        raise InputError(f"The {kind}'s JWS cannot be read: {refusal.reason}.") from None
    if isinstance(value, dict):
        return value
    raise InputError(f"The {kind}'s JWS does not contain a JSON object.")


def _read_payload(kind: str, payload: Json) -> JsonObject:
    if not isinstance(payload, dict):
        raise InputError(f"The {kind} has no payload.")
    # A JWS receipt may omit its transaction; in EIP-712 it is empty.
    whole = {"transaction": "", **payload} if kind == "receipt" else payload
    members = MEMBERS[kind]
    for name, expected in members.items():
        value: Any = whole.get(name)
        is_right = type(value) is expected and (not isinstance(value, int) or 0 <= value <= _MAX_SAFE_INTEGER)
        if not is_right:
            wanted = "a string" if expected is str else "a number from 0"
            raise InputError(f"The {kind}'s {name} is {quote(value)}; expected {wanted}.")
    for name in whole:
        if name not in members:
            raise InputError(f"The {kind} has an unknown member {quote(name)}.")
    if whole["version"] != 1:
        raise InputError(f"The {kind} has version {quote(whole['version'])}; expected 1.")
    if origin_of(whole["resourceUrl"]) is None:
        raise InputError(
            f"The {kind}'s resourceUrl is {quote(whole['resourceUrl'])}; expected an http URL without a user."
        )
    return whole
