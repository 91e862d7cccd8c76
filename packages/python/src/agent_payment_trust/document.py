"""Signed documents of the service: credentials, verdicts, certificates, evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from .errors import Refusal, quote
from .issuer import parse_issuer
from .key_set import KeySet
from .proof import jws_holds, proof_value_holds, read_jws, read_proof
from .strict_json import JsonObject, jcs, parse_strict_json
from .times import Freshness, freshness


@dataclass(frozen=True)
class Signature:
    """The signer, if ``valid``; otherwise a stable ``code`` and a reason for people."""

    valid: bool
    issuer: str | None = None
    kid: str | None = None
    created: str | None = None
    code: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Report:
    """The result of a check."""

    #: Whether it is signed by a trusted key and currently valid.
    valid: bool
    signature: Signature
    freshness: Freshness
    #: The document, once its signature is valid: read it from here, never from the text again.
    document: JsonObject | None


def verify_document(
    source: str | bytes, keys: KeySet, *, issuer: str | None = None, at: datetime | None = None
) -> Report:
    """Check a signed document: its ``jws`` and its ``proofValue``, both with the key that its proof names.

    :param source: the text or bytes as received; a parsed object would hide duplicate members
    :param issuer: the origin or ``did:web`` identifier of the expected signer; any holder of a key if omitted
    :param at: the time to judge freshness at; now if omitted
    :raises InputError: if ``issuer`` is invalid; faults of the document are in the report
    """
    expected = None if issuer is None else parse_issuer(issuer).did
    try:
        return _verify(source, keys, expected, at or datetime.now(timezone.utc))
    except Refusal as refusal:
        signature = Signature(False, code=refusal.code, reason=refusal.reason)
        return Report(False, signature, Freshness("unknown"), None)


def _verify(source: str | bytes, keys: KeySet, expected: str | None, at: datetime) -> Report:
    document = parse_strict_json(source)
    if not isinstance(document, dict):
        raise Refusal("malformed_document", "the document is not a JSON object")
    proof = read_proof(document)
    if expected is not None and proof.issuer.did != expected:
        raise Refusal(
            "issuer_mismatch", f"the document is signed by {quote(proof.issuer.did)}, expected {quote(expected)}"
        )
    jws = read_jws(proof.jws, proof.kid)
    key = keys.get(proof.kid)
    if key is None:
        raise Refusal("unknown_key", f"no trusted key has the ID {quote(proof.kid)}")
    canonical = jcs({name: value for name, value in document.items() if name != "proof"})
    if not jws_holds(jws, canonical, key):
        raise Refusal("jws_mismatch", "the jws does not verify: this document is not what was signed")
    if not proof_value_holds(proof, canonical, key):
        raise Refusal(
            "proof_value_mismatch",
            "the proofValue does not verify: this document or its proof is not what was signed",
        )
    state = freshness(document, proof.created, at)
    signature = Signature(True, proof.issuer.did, proof.kid, proof.created)
    return Report(state.state in ("current", "no_expiry"), signature, state, document)
