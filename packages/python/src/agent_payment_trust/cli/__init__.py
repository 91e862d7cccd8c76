"""The program ``agent-payment-trust``, with the exit codes of the TypeScript verifier."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from ..errors import InputError
from . import conditions, document, log, offer_receipt

USAGE = """Checks documents signed by an Agent Payment Trust Service or by an x402 seller.

  agent-payment-trust [document] <file | URL | ->   checks a signed credential, verdict or certificate
  agent-payment-trust conditions <file | URL | ->   computes the conditions_sha256 of a delivery claim
  agent-payment-trust offer <file | URL | ->        checks the signed offers of an x402 402
  agent-payment-trust receipt <file | URL | ->      checks the signed receipt of an x402 payment
  agent-payment-trust log <file | URL | ->          checks that a record is in the public log

Each has its own --help. Exit codes: 0 valid, fresh, and as required; 1 not valid or not fresh; 2 usage error or
unreadable input; 3 valid and fresh, but not about the required wallet or without what is required."""

_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "document": document.run,
    "conditions": conditions.run,
    "offer": offer_receipt.run_offer,
    "receipt": offer_receipt.run_receipt,
    "log": log.run,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    args = sys.argv[1:] if arguments is None else list(arguments)
    if not args or args[0] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if args else sys.stderr)
        return 0 if args else 2
    try:
        command = _COMMANDS.get(args[0])
        return document.run(args) if command is None else command(args[1:])
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    except SystemExit as error:  # argparse
        return error.code if isinstance(error.code, int) else 2
