"""The command ``conditions``."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence

from ..conditions import claim_sha256
from ..errors import InputError, Refusal, quote
from ..sources import read_source
from ..strict_json import parse_strict_json


def run(args: Sequence[str]) -> int:
    """Compute the hash of a claim's conditions, and compare it with a verdict's. Returns 0, or 1 if they differ."""
    parser = ArgumentParser(
        prog="agent-payment-trust conditions", description="Computes the conditions_sha256 of a delivery claim."
    )
    parser.add_argument("source", help="the claim as submitted: a file, a URL, or -")
    parser.add_argument("--verdict", metavar="FILE", help="a verdict to compare the hash with")
    options = parser.parse_args(args)
    computed = claim_sha256(read_source(options.source))
    print(computed)
    if options.verdict is None:
        return 0
    stated = _stated(read_source(options.verdict))
    is_same = stated == computed
    print(
        "same: the verdict is about these conditions"
        if is_same
        else f"DIFFERS: the verdict names {quote(stated)}, so it is about different conditions"
    )
    print("  The verdict's own signature is not checked here; use agent-payment-trust document.")
    return 0 if is_same else 1


def _stated(source: bytes) -> str:
    try:
        document = parse_strict_json(source)
    except Refusal as refusal:
        raise InputError(f"The verdict is not valid: {refusal.reason}") from None
    stated = document.get("conditions_sha256") if isinstance(document, dict) else None
    if isinstance(stated, str):
        return stated
    raise InputError("The verdict is not valid: conditions_sha256 is missing.")
