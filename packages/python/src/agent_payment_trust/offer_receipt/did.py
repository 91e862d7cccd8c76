"""Keys in DID documents (DID Core 1.0)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..encodings import from_base58, to_base64url
from ..errors import InputError, Refusal, quote
from ..strict_json import JsonObject, parse_strict_json

if TYPE_CHECKING:
    from joserfc.jwk import Key

#: The multicodec prefix of an Ed25519 public key.
_ED25519_PUB = b"\xed\x01"


@dataclass(frozen=True)
class DidKey:
    """The key of a JWS, with the only algorithm that it may be used with."""

    algorithm: str
    key: Key


def key_of(source: str | bytes, kid: str) -> DidKey | None:
    """Return the key that a DID document lists as this verification method: Ed25519, or P-256 as a JWK.

    :param kid: a DID URL, ``did:web:HOST#FRAGMENT``
    :raises InputError: if the document or the key cannot be read
    """
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, OKPKey

    document = _read(source)
    did, separator, fragment = kid.partition("#")
    if document.get("id") != did or not separator or not fragment or "#" in fragment:
        return None
    listed = document.get("verificationMethod")
    methods = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    method = next((one for one in methods if one.get("id") in (kid, f"#{fragment}")), None)
    if method is None:
        return None
    jwk = _jwk_of(method)
    if jwk is None:
        raise InputError(f"The key {quote(kid)} is not an Ed25519 or P-256 key.")
    try:
        if jwk["kty"] == "OKP":
            return DidKey("EdDSA", OKPKey.import_key(jwk))
        return DidKey("ES256", ECKey.import_key(jwk))
    except (JoseError, ValueError):
        raise InputError(f"The key {quote(kid)} is listed with invalid members.") from None


def _read(source: str | bytes) -> JsonObject:
    try:
        document = parse_strict_json(source)
    except Refusal as refusal:
        raise InputError(f"The DID document cannot be read: {refusal.reason}.") from None
    if isinstance(document, dict):
        return document
    raise InputError("The DID document is not a JSON object.")


def _jwk_of(method: JsonObject) -> dict[str, str | list[str]] | None:
    """Return the public members only, and ignore everything else about the key."""
    jwk, multibase = method.get("publicKeyJwk"), method.get("publicKeyMultibase")
    if isinstance(jwk, dict):
        for kty, crv, coordinates in (("OKP", "Ed25519", ["x"]), ("EC", "P-256", ["x", "y"])):
            public: dict[str, Any] = {name: jwk.get(name) for name in coordinates}
            if (jwk.get("kty"), jwk.get("crv")) == (kty, crv) and all(isinstance(v, str) for v in public.values()):
                return {"kty": kty, "crv": crv, **public}
        return None
    data = from_base58(multibase[1:], 34) if isinstance(multibase, str) and multibase[:1] == "z" else None
    if data is None or data[:2] != _ED25519_PUB:
        return None
    return {"kty": "OKP", "crv": "Ed25519", "x": to_base64url(data[2:])}
