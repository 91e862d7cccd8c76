"""The proof of a document: its form, and its two signatures."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from .encodings import from_base58, from_base64url, to_base64url
from .errors import Refusal, quote
from .issuer import Issuer, issuer_of_did
from .strict_json import Json, JsonObject, jcs, parse_strict_json
from .times import parse_time

#: A proof has exactly these members: one unknown here could change its meaning.
_MEMBERS = frozenset(
    ["@context", "type", "cryptosuite", "created", "verificationMethod", "proofPurpose", "jws", "proofValue"]
)
_FIXED = {"type": "DataIntegrityProof", "cryptosuite": "eddsa-jcs-2022", "proofPurpose": "assertionMethod"}
_METHOD = re.compile(r"([^#]+)#([A-Za-z0-9_-]+)", re.ASCII)


@dataclass(frozen=True)
class Proof:
    """A proof whose form has been checked, but not its signatures."""

    issuer: Issuer
    kid: str
    created: str
    jws: str
    proof_value: bytes
    #: The members that ``proofValue`` signs.
    options: JsonObject


def read_proof(document: JsonObject) -> Proof:
    """Return the proof of a document, in the only form that the service writes.

    :raises Refusal: ``malformed_document``, ``malformed_proof``, or ``issuer_mismatch``
    """
    if "proof" not in document:
        raise Refusal("malformed_document", "there is no proof")
    proof = document["proof"]
    if not isinstance(proof, dict):
        raise _malformed("the proof is not a single object")
    for name in proof:
        if name not in _MEMBERS:
            raise _malformed(f"the proof has an unknown member {quote(name)}")
    for name, expected in _FIXED.items():
        if proof.get(name) != expected:
            raise _malformed(f"{name} is {quote(proof.get(name))}, expected {quote(expected)}")
    if "@context" not in document or "@context" not in proof or jcs(proof["@context"]) != jcs(document["@context"]):
        raise _malformed("the proof's @context is not the document's")
    if parse_time(proof.get("created")) is None:
        raise _malformed("created is not a UTC time like 2026-11-21T09:30:00Z")
    if not isinstance(proof.get("jws"), str):
        raise _malformed("there is no jws")
    issuer, kid = _read_method(proof.get("verificationMethod"))
    if "issuer" in document and document["issuer"] != issuer.did:
        raise Refusal(
            "issuer_mismatch",
            f"the document names the issuer {quote(document['issuer'])}, but its proof names {quote(issuer.did)}",
        )
    options = {name: value for name, value in proof.items() if name != "proofValue"}
    return Proof(issuer, kid, proof["created"], proof["jws"], _read_value(proof.get("proofValue")), options)


@dataclass(frozen=True)
class DetachedJws:
    """A detached JWS (RFC 7515, appendix F); only its form has been checked."""

    protected: str
    signature: bytes


def read_jws(jws: str, expected_kid: str) -> DetachedJws:
    """Split ``header..signature``. The header has exactly ``alg`` EdDSA and ``kid``.

    :raises Refusal: for any other algorithm, and for any extension
    """
    parts = jws.split(".")
    if len(parts) != 3:
        raise Refusal("malformed_jws", "the jws is not a header and a signature separated by two dots")
    header, payload, signature = parts
    if payload != "":
        raise Refusal("payload_not_detached", "the jws carries its own payload")
    _check_header(header, expected_kid)
    raw = from_base64url(signature)
    if raw is None or len(raw) != 64:
        raise Refusal("malformed_jws", "the signature is not 64 bytes in base64url")
    return DetachedJws(header, raw)


def jws_holds(jws: DetachedJws, canonical: bytes, key: Ed25519PublicKey) -> bool:
    """Return whether the JWS signs the canonical document: Ed25519 over ``header.payload`` (RFC 8037)."""
    return _holds(key, jws.signature, f"{jws.protected}.{to_base64url(canonical)}".encode("ascii"))


def proof_value_holds(proof: Proof, canonical: bytes, key: Ed25519PublicKey) -> bool:
    """Return whether ``proofValue`` signs the proof's options and the canonical document (W3C ``eddsa-jcs-2022``)."""
    data = hashlib.sha256(jcs(proof.options)).digest() + hashlib.sha256(canonical).digest()
    return _holds(key, proof.proof_value, data)


def _holds(key: Ed25519PublicKey, signature: bytes, data: bytes) -> bool:
    try:
        key.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def _check_header(text: str, expected_kid: str) -> None:
    raw = from_base64url(text)
    header = None if raw is None else parse_strict_json(raw)
    if not isinstance(header, dict):
        raise Refusal("malformed_jws", "the jws header is not a base64url-encoded JSON object")
    if "crit" in header:
        raise Refusal("critical_header", f"the jws requires extensions: crit is {quote(header['crit'])}")
    if header.get("alg") != "EdDSA":
        raise Refusal("algorithm_not_allowed", f"the jws has alg {quote(header.get('alg'))}; only EdDSA is allowed")
    if not isinstance(header.get("kid"), str):
        raise Refusal("malformed_jws", "the jws header names no kid")
    for name in header:
        if name not in ("alg", "kid"):
            raise Refusal("malformed_jws", f"the jws header has an unknown member {quote(name)}")
    if header["kid"] != expected_kid:
        raise Refusal("malformed_jws", "the jws and verificationMethod name different keys")


def _read_method(method: Json) -> tuple[Issuer, str]:
    match = _METHOD.fullmatch(method) if isinstance(method, str) else None
    issuer = None if match is None else issuer_of_did(match[1])
    if match is None or issuer is None:
        raise _malformed(f"verificationMethod is {quote(method)}, expected did:web:HOST#KID")
    return issuer, match[2]


def _read_value(text: Json) -> bytes:
    value = from_base58(text[1:], 64) if isinstance(text, str) and text.startswith("z") else None
    if value is not None:
        return value
    raise _malformed("proofValue is not z followed by 64 bytes in base58btc")


def _malformed(reason: str) -> Refusal:
    return Refusal("malformed_proof", reason)
