"""The public log (C2SP tlog-tiles): checks offline that a record is in it."""

from .logged import LoggedReport, check_logged
from .policy import Policy, parse_policy
from .proof import LogProof, Proven, leaf_hash, parse_proof, verify_proof

__all__ = [
    "LogProof",
    "LoggedReport",
    "Policy",
    "Proven",
    "check_logged",
    "leaf_hash",
    "parse_policy",
    "parse_proof",
    "verify_proof",
]
