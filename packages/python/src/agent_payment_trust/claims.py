"""Claims of signed documents, and their subjects."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .errors import quote
from .strict_json import JsonObject


@dataclass(frozen=True)
class Claims:
    """The claims of a document, in words."""

    #: ``wallet``, ``seller``, ``certificate``, ``verdict``, ``evaluation``, ``settlement``, ``log`` or ``unknown``
    kind: str
    #: The one wallet that the document is about, in lowercase; None if it is about several or none.
    wallet: str | None
    about: str
    #: The result in a few words, such as ``not verified: FAIL in scam``.
    summary: str
    details: tuple[str, ...] = ()


def claims_of(document: JsonObject) -> Claims:
    """Read the claims of a document.

    Does not check the signature: pass the ``document`` of a report whose signature is valid.
    """
    kind = document.get("type")
    types = kind if isinstance(kind, list) else [kind]
    for name, read in _READERS.items():
        if name in types:
            return read(document)
    return Claims("unknown", None, f"a document of type {quote(kind)}", "")


def standing_of(subject: JsonObject) -> str:
    """Return ``verified``, or the reason why a wallet or seller is not, from its credential's subject or its record."""
    if subject.get("verified") is True:
        test = subject.get("test_network")
        return "verified" if test is None else f"verified on the test network {_plain(test)} only"
    listed = subject.get("conformance", subject.get("certs"))
    certificates = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    fails = [one for one in certificates if one.get("result") == "fail" and one.get("fresh") is True]
    if fails:
        names = dict.fromkeys(_plain(one.get("product")) for one in fails)
        return f"not verified: FAIL in {', '.join(names)}"
    return f"not verified: {'never tested' if subject.get('tested') is False else 'no current PASS'}"


def _of_wallet(document: JsonObject) -> Claims:
    subject = _object(document.get("credentialSubject"))
    wallet = subject.get("wallet")
    details = tuple(
        f"{_plain(name)}: {_result_of(_object(capability))}"
        for name, capability in _object(subject.get("capabilities")).items()
    )
    return Claims("wallet", _address(wallet), f"wallet {_plain(wallet)}", standing_of(subject), details)


def _result_of(capability: JsonObject) -> str:
    result = capability.get("result")
    if result not in ("pass", "fail"):
        return "not tested"
    if capability.get("fresh") is not True:
        return f"{result.upper()}, no longer fresh"
    return f"{result.upper()} until {_plain(capability.get('valid_until'))}"


def _of_seller(document: JsonObject) -> Claims:
    subject = _object(document.get("credentialSubject"))
    return Claims("seller", None, f"seller {_plain(subject.get('id'))}", standing_of(subject))


def _of_certificate(subject: JsonObject) -> Claims:
    wallet, result = subject.get("wallet"), _plain(subject.get("result")).upper()
    certificate = _plain(subject.get("certificate", subject.get("id")))
    return Claims(
        "certificate",
        _address(wallet),
        f"wallet {_plain(wallet)}",
        f"{result} in {_plain(subject.get('product'))}",
        (f"certificate {certificate}: one test run, which does not show whether the wallet is verified",),
    )


def _of_seller_certificate(document: JsonObject) -> Claims:
    prefix = document.get("path_prefix")
    return Claims(
        "certificate",
        None,
        f"seller {_plain(document.get('origin'))}{'' if prefix == '/' else _plain(prefix)}",
        f"{_plain(document.get('verdict')).upper()} in an exam",
        (f"certificate {_plain(document.get('id'))}: one exam, which does not show whether the seller is verified",),
    )


def _mark(summary: str) -> Callable[[JsonObject], Claims]:
    return lambda document: Claims("log", None, f"certificate {_plain(document.get('certificate'))}", summary)


def _of_verdict(document: JsonObject) -> Claims:
    deal = document.get("deal_ref")
    parties = _object(document.get("parties"))
    earlier = _object(document.get("supersedes")).get("id")
    details = [] if deal is None else [f"deal {quote(deal)}"]
    for role in ("payer", "payee"):
        if isinstance(parties.get(role), dict):
            details.append(f"{role} {_plain(parties[role].get('wallet'))}, as the claim names it")
    if earlier is not None:
        details.append(f"it supersedes the verdict {_plain(earlier)}")
    details.append(f"a correction would supersede it: see {_plain(document.get('verdict_url'))}")
    return Claims(
        "verdict",
        None,
        f"the claim with conditions_sha256 {_plain(document.get('conditions_sha256'))}",
        f"verdict {_plain(document.get('verdict'))} ({_plain(document.get('category'))})",
        tuple(details),
    )


def _of_evaluation(document: JsonObject) -> Claims:
    payment, usd = _plain(document.get("payment_id")), _plain(document.get("amount_usd"))
    payer, merchant = _plain(document.get("payer")), _plain(document.get("merchant"))
    return Claims(
        "evaluation",
        None,
        f"payment {payment}: {usd} USDC from {payer} to {merchant}",
        f"decision {_plain(document.get('decision'))}",
        (quote(document.get("rule_text")),),
    )


def _of_settlement(document: JsonObject) -> Claims:
    order, outcome = _object(document.get("authorization")), _object(document.get("settlement"))
    payer, value, payee = (_plain(order.get(name)) for name in ("from", "value", "to"))
    return Claims(
        "settlement",
        _address(order.get("from")),
        f"the authorization of {payer} to pay {value} atomic USDC to {payee} on {_plain(outcome.get('network'))}",
        f"{_plain(outcome.get('status'))}{', final' if outcome.get('final') is True else ''}",
        (f"nonce {_plain(order.get('nonce'))}",),
    )


#: Readers by document type.
_READERS: dict[str, Callable[[JsonObject], Claims]] = {
    "AgentPaymentCredential": _of_wallet,
    "SellerCredential": _of_seller,
    "AgentPaymentCertificate": lambda document: _of_certificate(_object(document.get("credentialSubject"))),
    "ArbiterVerdict": _of_verdict,
    "EscrowEvaluation": _of_evaluation,
    "SettlementStatement": _of_settlement,
    "IssuedCertificate": lambda document: _of_certificate({**document, "result": document.get("verdict")}),
    "IssuedSellerCertificate": _of_seller_certificate,
    "ReversedCertificate": _mark("reversed, so it no longer counts"),
    "CorrectedSellerCertificate": _mark("corrected, so it no longer counts"),
    "PublishedProof": _mark("the proof of its FAIL is published"),
}


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _address(value: object) -> str | None:
    return value.lower() if isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]{40}", value) else None


def _plain(value: object) -> str:
    """Return a plain word unchanged; quote anything else."""
    return value if isinstance(value, str) and re.fullmatch(r"[\w.:/-]{1,200}", value, re.ASCII) else quote(value)
