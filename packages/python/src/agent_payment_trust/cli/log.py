"""The command ``log``."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone

from ..errors import InputError, Refusal, quote
from ..sources import read_source
from ..strict_json import parse_unsigned_json
from ..tlog import LoggedReport, Policy, check_logged, parse_policy
from .trust import add_trust_options, read_trust


def run(args: Sequence[str]) -> int:
    """Check that a record is in the public log. Returns 0 or 1."""
    parser = ArgumentParser(
        prog="agent-payment-trust log",
        description="Checks that a record is in the service's public log. The proof is at the record's address with "
        ".tlog-proof; the policy (C2SP tlog-policy) names the log, the witnesses, and how many must have cosigned.",
    )
    parser.add_argument("source", help="the record's JSON: a file, a URL, or -")
    parser.add_argument("--proof", required=True, metavar="FILE", help="the record's .tlog-proof")
    parser.add_argument("--policy", required=True, metavar="FILE", help="the log and witnesses to trust")
    add_trust_options(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(args)
    policy = _read_policy(options.policy)
    record = read_source(options.source)
    trust = read_trust(options)
    report = check_logged(record, read_source(options.proof), policy, trust.keys, issuer=trust.issuer, at=trust.at)
    print(json.dumps(asdict(report), indent=2) if options.json else _as_text(report, record))
    return 0 if report.valid else 1


def _read_policy(source: str) -> Policy:
    try:
        return parse_policy(read_source(source))
    except Refusal as refusal:
        raise InputError(f"{quote(source)}: {refusal.reason}") from None


def _as_text(report: LoggedReport, record: bytes) -> str:
    if not report.valid or report.claims is None:
        return f"NOT VALID ({report.code}): {report.reason}"
    # The log chooses the ids, so they are untrusted.
    record_id = quote(report.id).strip('"')
    names = ", ".join(f"{name} on {_date(seconds)}" for name, seconds in report.witnesses.items())
    lines = [
        f"valid: the {report.type} {record_id} is entry {report.index} of the log {report.log}",
        f"  about      {report.claims.about}",
    ]
    if report.claims.summary:
        lines.append(f"  result     {report.claims.summary}")
    lines += _since(record)
    lines += [
        f"  signed     by {report.issuer}",
        f"  tree       {report.size} {'entry' if report.size == 1 else 'entries'}",
        f"  witnessed  {names or 'none; the policy requires no witness'}",
    ]
    return "\n".join(lines)


def _since(record: bytes) -> list[str]:
    """Report a later change of the record. The proof of the original entry is valid all the same."""
    document = parse_unsigned_json(record)
    marks = [name for name in ("reversed", "corrected", "expired") if document.get(name) is True]
    if not marks:
        return []
    return [f"  since      the record is marked {' and '.join(marks)}, so it no longer counts"]


def _date(seconds: int) -> str:
    if seconds == 0:
        return "no stated time"
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    except (OverflowError, ValueError, OSError):
        return f"second {seconds}"
