"""The command ``document``."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone

from ..claims import Claims, claims_of
from ..document import Report, verify_document
from ..errors import InputError, quote
from ..requirement import REQUIREMENTS, parse_requirements, shortcomings
from ..sources import read_source
from ..times import Freshness
from .trust import Trust, add_trust_options, read_trust


def run(args: Sequence[str]) -> int:
    """Check a signed document. Returns 0, 1, or 3."""
    parser = ArgumentParser(prog="agent-payment-trust document", description="Checks a signed document.")
    parser.add_argument("source", help="a file, a URL, or - for standard input")
    add_trust_options(parser)
    parser.add_argument(
        "--require", action="append", default=[], metavar="NAMES", help=f"comma-separated: {', '.join(REQUIREMENTS)}"
    )
    parser.add_argument("--wallet", metavar="0x…", help="the wallet that the document must be about")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(args)
    required = [name for text in options.require for name in parse_requirements(text)]
    if options.wallet is not None and not re.fullmatch(r"0x[0-9a-fA-F]{40}", options.wallet):
        raise InputError(f"--wallet {quote(options.wallet)} is not an address: expected 0x and 40 hex digits.")
    source = read_source(options.source)
    trust = read_trust(options)
    report = verify_document(source, trust.keys, issuer=trust.issuer, at=trust.at)
    claims = None if report.document is None else claims_of(report.document)
    lacking: tuple[str, ...] = ()
    if report.document is not None and claims is not None:
        at = trust.at or datetime.now(timezone.utc)
        lacking = shortcomings(report.document, claims, required, wallet=options.wallet, at=at)
    print(_as_json(report, claims, lacking, trust) if options.json else _as_text(report, claims, lacking, trust))
    if not report.valid:
        return 1
    return 3 if lacking else 0


def _as_json(report: Report, claims: Claims | None, lacking: Sequence[str], trust: Trust) -> str:
    state = report.freshness
    freshness = {"state": state.state, "from": state.from_, "until": state.until}
    shown = {
        "valid": report.valid,
        "signature": {name: value for name, value in asdict(report.signature).items() if value is not None},
        "freshness": {name: value for name, value in freshness.items() if value is not None},
        "claims": None if claims is None else asdict(claims),
        "shortcomings": list(lacking),
        "trusted": {"issuer": trust.issuer, "keys": trust.keys_from, "because": trust.because},
    }
    return json.dumps(shown, indent=2)


def _as_text(report: Report, claims: Claims | None, lacking: Sequence[str], trust: Trust) -> str:
    signature = report.signature
    signed = (
        f"valid, by {signature.issuer} with key {signature.kid}, on {signature.created}"
        if signature.valid
        else f"not valid ({signature.code}): {signature.reason}"
    )
    is_credential = claims is not None and claims.kind in ("wallet", "seller")
    summary = "" if claims is None else claims.summary
    in_first = report.valid and is_credential
    lines = [f"valid{f', {summary}' if is_credential else ''}" if report.valid else "NOT VALID"]
    lines += [f"NOT AS REQUIRED: {one}" for one in lacking]
    lines += [f"  signature  {signed}", f"  freshness  {_describe(report.freshness)}"]
    if claims is not None:
        lines.append(f"  about      {claims.about}")
        if summary and not in_first:
            lines.append(f"  {'result ' if report.valid else 'claimed'}    {summary}")
        lines += [f"             {detail}" for detail in claims.details]
    lines.append(f"  trusted    {trust.keys_from}: {trust.because}")
    return "\n".join(lines)


def _describe(state: Freshness) -> str:
    return {
        "unknown": "unknown: without a valid signature, nothing in the document can be trusted",
        "not_yet_valid": f"not valid before {state.from_}",
        "no_expiry": f"has no expiry; it states what was known on {state.from_}",
        "current": f"current until {state.until}",
        "expired": f"expired on {state.until}",
    }[state.state]
