"""Ed25519 public keys by key ID (RFC 7517)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from .encodings import from_base64url
from .errors import InputError, Refusal, quote
from .strict_json import JsonObject, parse_strict_json

KeySet: TypeAlias = Mapping[str, Ed25519PublicKey]


def parse_key_set(source: str | bytes) -> KeySet:
    """Return the Ed25519 signing keys of a JWK Set; keys of other types or uses are ignored.

    :raises InputError: if it is not a key set, contains a private key, repeats a key ID, or has no Ed25519 key
    """
    keys = _parse(source).get("keys")
    if not isinstance(keys, list):
        raise InputError("the key set is not a JWK Set with an array named keys")
    found: dict[str, Ed25519PublicKey] = {}
    for jwk in keys:
        if not isinstance(jwk, dict) or not _is_ours(jwk):
            continue
        if "d" in jwk:
            raise InputError("the key set contains a private key: never share one with anyone")
        kid, x = jwk.get("kid"), jwk.get("x")
        raw = from_base64url(x) if isinstance(x, str) else None
        if not isinstance(kid, str) or raw is None or len(raw) != 32:
            raise InputError("the key set has an Ed25519 key without a usable kid and x")
        if kid in found:
            raise InputError(f"the key set contains the key ID {quote(kid)} twice")
        found[kid] = Ed25519PublicKey.from_public_bytes(raw)
    if not found:
        raise InputError("the key set has no Ed25519 key for signatures")
    return found


def _parse(source: str | bytes) -> JsonObject:
    try:
        value = parse_strict_json(source)
    except Refusal as refusal:
        raise InputError(f"the key set cannot be read: {refusal.reason}") from None
    if isinstance(value, dict):
        return value
    raise InputError("the key set is not a JSON object")


def _is_ours(jwk: JsonObject) -> bool:
    return (jwk.get("kty"), jwk.get("crv"), jwk.get("use", "sig")) == ("OKP", "Ed25519", "sig") and jwk.get(
        "alg", "EdDSA"
    ) in ("EdDSA", "Ed25519")
