"""Requirements on a document, in addition to a valid signature."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from .claims import Claims
from .errors import InputError, quote
from .strict_json import JsonObject
from .times import parse_time

CAPABILITIES = ("can_pay", "scam_resistance", "recipient_awareness", "full_suite", "retry_safety")
#: ``verified``: at least one current PASS and no current FAIL. A capability: a fresh PASS for it.
REQUIREMENTS = ("verified", *CAPABILITIES)


def parse_requirements(text: str) -> tuple[str, ...]:
    """Parse requirements from a text such as ``verified,can_pay``.

    :raises InputError: for an unknown name
    """
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in REQUIREMENTS:
            raise InputError(f"{quote(name)} cannot be required: expected {', '.join(REQUIREMENTS)}.")
    return names


def unmet(
    subject: JsonObject, required: Sequence[str], at: datetime, network: str | None = None
) -> tuple[str, ...]:
    """Return the requirements that a credential's subject, or a verification record, does not meet.

    A record of a test network counts only for a wallet that pays on that network (CAIP-2).
    """
    if subject.get("test_network", network) != network:
        return tuple(required)

    def is_met(name: str) -> bool:
        if name == "verified":
            return subject.get("verified") is True
        return _is_proven(subject.get("capabilities"), name, at)

    return tuple(name for name in required if not is_met(name))


def shortcomings(
    document: JsonObject, claims: Claims, required: Sequence[str], *, wallet: str | None = None, at: datetime
) -> tuple[str, ...]:
    """Return the reasons why a document does not meet the requirements, one sentence each; empty if it does.

    Only the credential of a wallet or a seller states whether its subject is verified. A certificate, a verdict, or any
    other document meets no requirement.
    """
    is_credential = claims.kind in ("wallet", "seller")
    subject = document.get("credentialSubject")
    lacking = unmet(subject if is_credential and isinstance(subject, dict) else {}, required, at)

    def why(name: str) -> str:
        if not is_credential:
            return f"{name} is required, and only a wallet's or a seller's credential can state it"
        return claims.summary if name == "verified" else f"no fresh PASS for {name}"

    is_other = wallet is not None and wallet.lower() != claims.wallet
    about = (f"it is about {claims.about}, not about wallet {wallet}",) if is_other else ()
    return (*about, *(why(name) for name in lacking))


def _is_proven(capabilities: object, name: str, at: datetime) -> bool:
    capability = capabilities.get(name) if isinstance(capabilities, dict) else None
    if not isinstance(capability, dict):
        return False
    until = parse_time(capability.get("valid_until"))
    return capability.get("result") == "pass" and capability.get("fresh") is True and until is not None and at < until
