"""The conditions that a verdict is about."""

from __future__ import annotations

import hashlib

from .errors import InputError, Refusal
from .strict_json import jcs, parse_unsigned_json


def claim_sha256(source: str | bytes) -> str:
    """Return ``conditions_sha256``: the SHA-256 of the RFC 8785 form of a claim's ``{category, conditions}``, in hex.

    :raises InputError: if the source is not a claim
    """
    try:
        claim = parse_unsigned_json(source)
    except Refusal as refusal:
        raise InputError(f"The claim is not valid: {refusal.reason}") from None
    category = claim.get("category") if isinstance(claim, dict) else None
    conditions = claim.get("conditions") if isinstance(claim, dict) else None
    if not isinstance(category, str) or not isinstance(conditions, dict):
        raise InputError("The claim is not valid: expected category, a string, and conditions, an object.")
    return hashlib.sha256(jcs({"category": category, "conditions": conditions})).hexdigest()
