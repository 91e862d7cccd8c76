"""The commands ``offer`` and ``receipt``."""

from __future__ import annotations

import base64
import binascii
import json
import re
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import InputError, Refusal, quote
from ..issuer import origin_of
from ..offer_receipt.check import SignedReport, check_signed
from ..offer_receipt.statement import read_statement
from ..sources import fetch, read_source
from ..strict_json import Json, JsonObject, parse_unsigned_json

_TERMS = ("scheme", "network", "asset", "payTo", "amount")
#: Version 1 of x402 names networks by a key, signed payloads by CAIP-2.
_NETWORKS = {"base": "eip155:8453", "base-sepolia": "eip155:84532"}


@dataclass(frozen=True)
class _Found:
    signed: Json
    #: Members of the surrounding message that the signed payload must match.
    members: dict[str, Any] = field(default_factory=dict)


def run_offer(args: Sequence[str]) -> int:
    """Check the signed offers of a 402. Returns 0 or 1."""
    parser = _parser("offer", "Checks the signed offers of a 402.")
    parser.add_argument("--at", metavar="SECONDS", help="when the offer must be valid, in Unix seconds; default now")
    options = parser.parse_args(args)
    if options.at is not None and not re.fullmatch(r"[0-9]{1,12}", options.at):
        raise InputError(f"--at {quote(options.at)} is not a time in Unix seconds")
    at = int(time.time()) if options.at is None else int(options.at)
    reports = [_check("offer", found, options.did, at=at) for found in _offers_in(_read(options.source))]
    return _report(reports, options.json)


def run_receipt(args: Sequence[str]) -> int:
    """Check the signed receipt of a payment. Returns 0 or 1."""
    parser = _parser("receipt", "Checks the signed receipt of a payment.")
    parser.add_argument("--offer", metavar="FILE", help="the 402 that was paid; its offers are checked too")
    parser.add_argument("--pay-to", metavar="0x…", help="the payee, who must have signed")
    options = parser.parse_args(args)
    if options.pay_to is not None and not re.fullmatch(r"0x[0-9a-fA-F]{40}", options.pay_to):
        raise InputError(f"--pay-to {quote(options.pay_to)} is not an address")
    receipt = _receipt_in(_read(options.source))
    # An offer counts by its signature alone; it may have expired after it was paid.
    offers = [] if options.offer is None else _offers_for(receipt, _offers_in(_read(options.offer)))
    paired: Sequence[_Found | None] = offers or [None]
    checked = [_pair(receipt, offer, options.did, options.pay_to) for offer in paired]
    valid = next((reports for reports in checked if all(report.valid for report in reports)), checked[0])
    return _report(valid, options.json)


def _pair(receipt: _Found, offer: _Found | None, did: str | None, pay_to: str | None) -> list[SignedReport]:
    if offer is None:
        return [_check("receipt", receipt, did, pay_to=pay_to)]
    offered = _check("offer", offer, did)
    agreed = {name: offered.payload[name] for name in ("resourceUrl", "network")}
    found = _Found(receipt.signed, {**receipt.members, **agreed})
    return [_check("receipt", found, did, pay_to=pay_to or offered.payload["payTo"]), offered]


def _check(kind: str, found: _Found, did: str | None, *, at: int = 0, pay_to: str | None = None) -> SignedReport:
    statement = read_statement(kind, found.signed)
    document = None
    if statement.format == "jws":
        url = f"{origin_of(statement.payload['resourceUrl'])}/.well-known/did.json"
        document = fetch(url) if did is None else read_source(did)
    return check_signed(kind, found.signed, at=at, did=document, pay_to=pay_to, members=found.members)


def _parser(name: str, description: str) -> ArgumentParser:
    parser = ArgumentParser(prog=f"agent-payment-trust {name}", description=description)
    parser.add_argument(
        "source", help="the value of PAYMENT-REQUIRED or PAYMENT-RESPONSE, in base64 or decoded: a file, a URL, or -"
    )
    parser.add_argument("--did", metavar="FILE", help="the seller's DID document; default: from the resource's host")
    parser.add_argument("--json", action="store_true", help="print the reports as JSON")
    return parser


def _read(source: str) -> JsonObject:
    """Read JSON, or JSON in base64 as in a header."""
    text = read_source(source).strip()
    try:
        value = parse_unsigned_json(text if text.startswith(b"{") else base64.b64decode(text))
    except (Refusal, binascii.Error) as error:
        raise InputError(f"The source is not JSON or a base64 header: {error}.") from None
    if isinstance(value, dict):
        return value
    raise InputError(f"{quote(source)} is not a JSON object.")


def _info_of(value: JsonObject) -> JsonObject:
    extensions = value.get("extensions")
    extension = extensions.get("offer-receipt") if isinstance(extensions, dict) else None
    info = extension.get("info") if isinstance(extension, dict) else None
    return info if isinstance(info, dict) else {}


def _offers_in(value: JsonObject) -> list[_Found]:
    """Return the offers of a 402, each with the terms that it is for, or a single offer."""
    if "format" in value:
        return [_Found(value)]
    offers = _info_of(value).get("offers")
    if not isinstance(offers, list) or not offers:
        raise InputError("No signed offer was found: expected extensions.offer-receipt.info.offers.")
    # The body of a 402 has the offers that do not fit in its header, without the terms that they are for.
    if value.get("x402Version") == 1:
        return [_Found(signed) for signed in offers]
    accepts, resource = value.get("accepts"), value.get("resource")
    terms = accepts if isinstance(accepts, list) else []
    url = resource.get("url") if isinstance(resource, dict) else resource
    return [_Found(signed, {"resourceUrl": url, **_comparable(_terms_of(signed, terms))}) for signed in offers]


def _terms_of(signed: Json, accepts: list[Json]) -> JsonObject:
    """Return the entry of ``accepts`` that an offer names by index, else the first that matches, else the first."""
    if isinstance(signed, dict) and "acceptIndex" in signed:
        index = signed["acceptIndex"]
        named = accepts[index] if type(index) is int and 0 <= index < len(accepts) else None
    else:
        payload = read_statement("offer", signed).payload
        entries = [one for one in accepts if isinstance(one, dict)]
        same = (one for one in entries if all(payload[name] == value for name, value in _comparable(one).items()))
        named = next(same, accepts[0] if accepts else None)
    if isinstance(named, dict):
        return named
    raise InputError("An offer's acceptIndex names no entry of accepts.")


def _comparable(terms: JsonObject) -> dict[str, Any]:
    return {name: terms.get(name) for name in _TERMS}


def _offers_for(receipt: _Found, offers: list[_Found]) -> list[_Found]:
    """Return the offers that a receipt can be for: the ones on its network, or all if none is."""
    network = read_statement("receipt", receipt.signed).payload["network"]
    same = [one for one in offers if read_statement("offer", one.signed).payload["network"] == network]
    return same or offers


def _receipt_in(value: JsonObject) -> _Found:
    """Return the receipt of a PAYMENT-RESPONSE with the response's own statements, or a single receipt."""
    if "format" in value:
        return _Found(value)
    info = _info_of(value)
    if "receipt" not in info:
        raise InputError("No signed receipt was found: expected extensions.offer-receipt.info.receipt.")
    members: dict[str, Any] = {"transaction": value.get("transaction")}
    if "payer" in value:
        members["payer"] = value["payer"]
    network = value.get("network")
    known = _NETWORKS.get(network) if isinstance(network, str) and ":" not in network else network
    if known is not None:
        members["network"] = known
    return _Found(info["receipt"], members)


def _report(reports: Sequence[SignedReport], as_json: bool) -> int:
    if as_json:
        print(json.dumps([asdict(report) for report in reports], indent=2))
    else:
        print("\n".join(_as_text(report) for report in reports))
    return 0 if all(report.valid for report in reports) else 1


def _as_text(report: SignedReport) -> str:
    word = "valid" if report.valid else "GENUINE, BUT EXPIRED" if report.genuine else "NOT VALID"
    lines = [f"{word}: {quote(report.payload['resourceUrl'])}"]
    lines += [f"  {name.ljust(12)} {quote(value)}" for name, value in report.payload.items()]
    lines += [f"  {'yes' if check.holds else 'NO '}  {check.statement}" for check in report.checks]
    return "\n".join(lines)
