"""Entries of the service's log, version 1, and the records that they are about."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from ..errors import Refusal, quote
from ..strict_json import Json, JsonObject, jcs, parse_strict_json, parse_unsigned_json

_TYPES = frozenset(
    [
        "certificate",
        "reversal",
        "proof",
        "seller_certificate",
        "seller_correction",
        "verdict",
        "correction",
        "evaluation",
        "contest_answer",
        "policy",
        "score_version",
        "signing_key",
    ]
)
#: Types of entries whose document is not the record itself.
_OF_CERTIFICATES = ("certificate", "reversal", "proof", "seller_certificate", "seller_correction")
_FORMS = (
    ["document", "id", "index", "type", "version"],
    ["id", "index", "sha256", "type", "url", "version"],
)
_MAX_ENTRY_BYTES = 65_535
_MAX_SAFE_INTEGER = 2**53 - 1

#: Members that a certificate's record and its entry share. A reorganization can move the settlement later.
_CERTIFICATE_MEMBERS = (
    "id", "product", "test_version", "verdict", "level", "checks", "detected", "wallet", "issued_at", "valid_until",
    "cert_url",
)  # fmt: skip
#: The same for a seller's record, in addition to its checks and the digest of its evidence.
_SELLER_MEMBERS = (
    "id", "product", "origin", "path_prefix", "request", "pay_to", "bought_by", "verdict", "level", "issued_at",
    "valid_until", "cert_url",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """An entry with the signed document itself, or, if that is large, with the SHA-256 of its RFC 8785 form."""

    index: int
    type: str
    id: str
    document: JsonObject | None
    sha256: str | None


def parse_entry(data: bytes) -> Entry:
    """Parse an entry, in its one canonical form.

    :raises Refusal: ``malformed_entry``, also for an unknown type
    """
    if len(data) > _MAX_ENTRY_BYTES:
        raise _malformed(f"it has {len(data)} bytes")
    entry = parse_strict_json(data)
    if not isinstance(entry, dict):
        raise _malformed("it is not a JSON object")
    if jcs(entry) != data:
        raise _malformed("it is not in canonical form (RFC 8785)")
    if list(entry) not in _FORMS:
        raise _malformed(f"its members are {quote(','.join(entry))}")
    index, kind, entry_id = entry["index"], entry["type"], entry["id"]
    if entry["version"] != 1 or entry["version"] is True:
        raise _malformed(
            f"its version is {quote(entry['version'])}, but this verifier supports only version 1; update it"
        )
    if type(index) is not int or index < 0:
        raise _malformed(f"its index is {quote(index)}")
    if kind not in _TYPES:
        raise _malformed(f"its type is {quote(kind)}, which this verifier does not know")
    if not isinstance(entry_id, str) or entry_id == "":
        raise _malformed("it has no id")
    document, digest = entry.get("document"), entry.get("sha256")
    has_digest = isinstance(digest, str) and re.fullmatch(r"[0-9a-f]{64}", digest) and isinstance(entry["url"], str)
    if not isinstance(document, dict) and not has_digest:
        raise _malformed("it needs a document, or a sha256 and a url")
    return Entry(index, kind, entry_id, document, digest)


def published_document(kind: str, source: str | bytes) -> JsonObject:
    """Return the part of a record that an entry of this type is about.

    A contest's record has its document as ``answer``.

    :raises Refusal: if it is not a JSON object
    """
    record = parse_unsigned_json(source)
    if not isinstance(record, dict):
        raise _mismatch("the record is not a JSON object")
    answer = record.get("answer")
    return answer if kind == "contest_answer" and isinstance(answer, dict) else record


def bind_entry(entry: Entry, record: JsonObject) -> None:
    """Check that an entry is about this record.

    :raises Refusal: ``entry_mismatch``
    """
    difference = _difference(entry, record)
    if difference is not None:
        raise _mismatch(difference)


def _difference(entry: Entry, record: JsonObject) -> str | None:
    document = entry.document
    if document is None:
        is_same = hashlib.sha256(jcs(record)).hexdigest() == entry.sha256
        return None if is_same else "the logged document has a different sha256"
    if jcs(record) == jcs(document):
        return None
    if entry.type not in _OF_CERTIFICATES:
        return "the logged document is a different one"
    if record.get("id") != entry.id:
        return f"it is about {quote(entry.id)}"
    if entry.type == "certificate":
        return _differing(_CERTIFICATE_MEMBERS, record, document)
    if entry.type == "seller_certificate":
        return _seller_difference(record, document)
    if document.get("certificate") != entry.id:
        return f"its document is about {quote(document.get('certificate'))}"
    if entry.type == "seller_correction":
        is_same = _object(record.get("correction")).get("reason") == document.get("reason")
        return None if is_same else "they differ in its reason"
    is_same = entry.type == "reversal" or _text(record, "proof") == _text(document, "fail_proof")
    return None if is_same else "they differ in proof"


def _seller_difference(record: JsonObject, document: JsonObject) -> str | None:
    different = _differing(_SELLER_MEMBERS, record, document)
    if different is not None:
        return different
    if _text(_object(record.get("evidence")), "sha256") != _text(document, "evidence_sha256"):
        return "they differ in evidence"
    if "settlements_on_chain" in document:
        names = ("transaction", "block", "from", "to", "value")
        settlements = [{name: one.get(name) for name in names} for one in _objects(record.get("settlements"))]
        if jcs(_exact(settlements)) != _text(document, "settlements_on_chain"):
            return "they differ in settlements"
    outcomes = {str(check.get("check")): check.get("outcome") for check in _objects(record.get("checks"))}
    return None if jcs(_exact(outcomes)) == _text(document, "checks") else "they differ in checks"


def _differing(names: tuple[str, ...], record: JsonObject, document: JsonObject) -> str | None:
    for name in names:
        if _text(record, name) != _text(document, name):
            return f"they differ in {name}"
    return None


def _text(value: JsonObject, name: str) -> bytes:
    return jcs(_exact(value[name])) if name in value else b""


def _exact(value: Json) -> Json:
    """Return a value as in a log's documents: safe integers only, any other number as its text."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        is_safe = float(value).is_integer() and abs(value) <= _MAX_SAFE_INTEGER
        return int(value) if is_safe else jcs(value).decode()
    if isinstance(value, list):
        return [_exact(part) for part in value]
    if isinstance(value, dict):
        return {name: _exact(part) for name, part in value.items()}
    return value


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[JsonObject]:
    return [_object(one) for one in value] if isinstance(value, list) else []


def _malformed(reason: str) -> Refusal:
    return Refusal("malformed_entry", f"the entry is not one of this log: {reason}")


def _mismatch(difference: str) -> Refusal:
    return Refusal("entry_mismatch", f"the entry is not about this record: {difference}")
