"""Whether an offer or a receipt is signed by the seller that it names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InputError
from ..issuer import issuer_of_did, origin_of
from ..strict_json import Json, JsonObject
from .did import DidKey, key_of
from .statement import MEMBERS, Statement, read_statement


@dataclass(frozen=True)
class Check:
    """One statement, and whether it is true."""

    statement: str
    holds: bool


@dataclass(frozen=True)
class SignedReport:
    valid: bool
    #: Whether every check other than the time holds: an expired offer is still evidence of the offer.
    genuine: bool
    checks: tuple[Check, ...]
    payload: JsonObject


def check_signed(
    kind: str,
    signed: Json,
    *,
    at: int,
    did: str | bytes | None = None,
    pay_to: str | None = None,
    members: Mapping[str, Any] | None = None,
) -> SignedReport:
    """Check a signed offer or receipt.

    A valid signature alone is not enough, because anyone can sign an offer for anyone's URL: a JWS must be signed by a
    key of the resource's own host, and an EIP-712 signature must be the payee's.

    :param kind: ``offer`` or ``receipt``
    :param at: Unix seconds; an offer must be valid at this time
    :param did: the text of the trusted DID document, for a JWS
    :param pay_to: the expected signer of an EIP-712 receipt, which does not name it; an offer does
    :param members: the values that the payload must have
    :raises InputError: if it is not a signed offer or receipt, or the DID document cannot be read
    """
    statement = read_statement(kind, signed)
    payload = statement.payload
    checks = _check_jws(statement, did) if statement.format == "jws" else _check_typed_data(kind, statement, pay_to)
    checks += [Check(f"{name} is {value}", _same(payload.get(name), value)) for name, value in (members or {}).items()]
    genuine = all(check.holds for check in checks)
    if kind == "offer":
        checks.append(Check("the offer has not expired", payload["validUntil"] >= at))
    return SignedReport(all(check.holds for check in checks), genuine, tuple(checks), payload)


def _check_jws(statement: Statement, did: str | bytes | None) -> list[Check]:
    key = None if did is None else key_of(did, statement.kid)
    origin = origin_of(statement.payload["resourceUrl"])
    signer = issuer_of_did(statement.kid.partition("#")[0])
    return [
        Check(
            f"the key is one of {(origin or '').partition('://')[2]}, the resource's host",
            signer is not None and signer.origin == origin,
        ),
        Check("the DID document lists the key", key is not None),
        Check("the JWS verifies", key is not None and _verifies(statement.signature, key)),
    ]


def _verifies(jws: str, key: DidKey) -> bool:
    import warnings

    from joserfc.errors import JoseError, SecurityWarning
    from joserfc.jws import deserialize_compact

    with warnings.catch_warnings():
        # The extension's algorithm is EdDSA, whose name RFC 9864 deprecates.
        warnings.simplefilter("ignore", SecurityWarning)
        try:
            deserialize_compact(jws, key.key, algorithms=[key.algorithm])
        except (JoseError, ValueError):
            return False
    return True


def _check_typed_data(kind: str, statement: Statement, pay_to: str | None) -> list[Check]:
    paid = statement.payload["payTo"] if kind == "offer" else pay_to
    signer = _signer_of(kind, statement)
    shown = "which is unknown" if paid is None else paid
    return [Check(f"the signer is the payee, {shown}", signer is not None and _same(signer, paid))]


def _signer_of(kind: str, statement: Statement) -> str | None:
    """Return the account that signed, or None for bytes that no account could have produced."""
    try:
        from eth_account import Account
        from eth_account.messages import encode_typed_data
    except ImportError:
        raise InputError("An EIP-712 signature needs eth-account: pip install 'agent-payment-trust[escrow]'.") from None
    if not re.fullmatch(r"0x[0-9a-fA-F]{130}", statement.signature):
        return None
    primary = kind.capitalize()
    fields = [{"name": name, "type": "uint256" if of is int else "string"} for name, of in MEMBERS[kind].items()]
    # The chain id is always 1: the domain belongs to the extension, not to a contract.
    domain = {"name": f"x402 {kind}", "version": "1", "chainId": 1}
    message = encode_typed_data(domain, {primary: fields}, dict(statement.payload))
    try:
        return str(Account.recover_message(message, signature=statement.signature))
    except Exception:  # eth-keys raises several kinds for bytes that are not a signature
        return None


def _same(one: object, other: object) -> bool:
    """Compare values; addresses and hashes without regard to case."""
    if type(one) is type(other) and one == other:
        return True
    lower = _lower_hex(one)
    return lower is not None and lower == _lower_hex(other)


def _lower_hex(value: object) -> str | None:
    is_hex = isinstance(value, str) and re.fullmatch(r"0x[0-9a-fA-F]{40}([0-9a-fA-F]{24})?", value)
    return str(value).lower() if is_hex else None
