"""Whether a record is in the log, signed by its issuer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from ..claims import Claims, claims_of
from ..document import verify_document
from ..errors import Refusal
from ..key_set import KeySet
from ..strict_json import jcs
from .entry import bind_entry, parse_entry, published_document
from .policy import Policy
from .proof import leaf_hash, parse_proof, verify_proof


@dataclass(frozen=True)
class LoggedReport:
    """The place of a record in the log, if ``valid``; otherwise a stable ``code`` and a reason for people."""

    valid: bool
    log: str = ""
    index: int = 0
    #: The number of entries in the tree.
    size: int = 0
    type: str = ""
    id: str = ""
    #: The signer of the entry's document, as a ``did:web`` identifier.
    issuer: str = ""
    claims: Claims | None = None
    #: POSIX times of the newest cosignatures, by witness.
    witnesses: dict[str, int] = field(default_factory=dict)
    code: str | None = None
    reason: str | None = None


def check_logged(
    record: str | bytes,
    proof: str | bytes,
    policy: Policy,
    keys: KeySet,
    *,
    issuer: str | None = None,
    at: datetime | None = None,
) -> LoggedReport:
    """Check that a record is in the log.

    The entry is about the record, its issuer signed the entry's document, the entry is in the tree at the index that it
    names, and the policy's quorum cosigned that tree. Nothing is fetched.

    :param record: the record's JSON as received
    :param proof: the text of its ``.tlog-proof``
    :raises InputError: if ``issuer`` is invalid
    """
    try:
        return _logged(record, proof, policy, keys, issuer, at)
    except Refusal as refusal:
        return LoggedReport(False, code=refusal.code, reason=refusal.reason)


def _logged(
    record: str | bytes,
    proof: str | bytes,
    policy: Policy,
    keys: KeySet,
    issuer: str | None,
    at: datetime | None,
) -> LoggedReport:
    parsed = parse_proof(proof)
    if parsed.extra is None:
        raise Refusal("malformed_log_proof", "the proof does not contain the entry")
    shown = verify_proof(parsed, leaf_hash(parsed.extra), policy)
    entry = parse_entry(parsed.extra)
    if entry.index != shown.index:
        raise Refusal("entry_mismatch", f"the entry names the index {entry.index}, but is at {shown.index}")
    document = published_document(entry.type, record)
    bind_entry(entry, document)
    report = verify_document(jcs(document if entry.document is None else entry.document), keys, issuer=issuer, at=at)
    signature = report.signature
    if report.document is None:
        raise Refusal(signature.code or "", f"the entry's document: {signature.reason}")
    return LoggedReport(
        True,
        shown.checkpoint.origin,
        entry.index,
        shown.checkpoint.size,
        entry.type,
        entry.id,
        signature.issuer or "",
        claims_of(report.document),
        shown.witnesses,
    )
