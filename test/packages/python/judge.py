"""Reads JSON lines {source, issuer, at} with a base64 source. Prints each report's code, or its claims if it is valid."""

import base64
import json
import sys
from pathlib import Path

from agent_payment_trust import claims_of, parse_key_set, verify_document
from agent_payment_trust.times import parse_time

keys = parse_key_set(Path(sys.argv[1]).read_bytes())
for line in sys.stdin:
    case = json.loads(line)
    source = base64.b64decode(case["source"])
    report = verify_document(source, keys, issuer=case.get("issuer"), at=parse_time(case["at"]))
    document = report.document
    claims = None if document is None else claims_of(document)
    print(
        json.dumps(
            {
                "valid": report.valid,
                "code": report.signature.code,
                "freshness": report.freshness.state,
                "about": None if claims is None else claims.about,
                "summary": None if claims is None else claims.summary,
                "details": None if claims is None else list(claims.details),
            }
        )
    )
