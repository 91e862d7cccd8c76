"""Trust for agent payments: check documents, gate paid routes, sell and buy through an escrow.

Checks are imported from here. ``agent_payment_trust.gate`` and ``agent_payment_trust.escrow`` need the extras of the
same names.
"""

from .claims import Claims, claims_of
from .conditions import claim_sha256
from .document import Report, Signature, verify_document
from .errors import InputError
from .key_set import KeySet, parse_key_set
from .offer_receipt import SignedReport, check_signed
from .requirement import REQUIREMENTS, parse_requirements, shortcomings, unmet
from .times import Freshness
from .tlog import LoggedReport, Policy, check_logged, parse_policy

__all__ = [
    "REQUIREMENTS",
    "Claims",
    "Freshness",
    "InputError",
    "KeySet",
    "LoggedReport",
    "Policy",
    "Report",
    "Signature",
    "SignedReport",
    "check_logged",
    "check_signed",
    "claim_sha256",
    "claims_of",
    "parse_key_set",
    "parse_policy",
    "parse_requirements",
    "shortcomings",
    "unmet",
    "verify_document",
]
