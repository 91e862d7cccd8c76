"""The buyer's side of the x402 scheme ``auth-capture``, for the client of the PyPI package ``x402``."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

from eth_account.signers.local import LocalAccount
from eth_utils.address import is_address, to_checksum_address
from x402.mechanisms.evm.default_assets import find_default_asset
from x402.mechanisms.evm.signers import EthAccountSigner
from x402.mechanisms.evm.types import TypedDataDomain
from x402.schemas import PaymentRequirements

from ..errors import InputError
from ..sources import fetch
from .payment_info import (
    PRIMARY_TYPE,
    TYPES,
    ZERO_ADDRESS,
    PaymentInfo,
    bound_salt,
    message_of,
    payer_agnostic_nonce,
)

#: The fee of a service's contracts: 1% of a release.
_FEE_BPS = 100
#: The longest validity of a signed authorization, in seconds.
_LONGEST_AUTHORIZATION_SECONDS = 3600
#: The longest time that a service may have to release the money, in seconds.
_LONGEST_CAPTURE_SECONDS = 48 * 3600


class RefusedTerms(ValueError):
    """The terms are dangerous or not understood. Nothing was signed."""


class Signer(Protocol):
    """Any object with an address that signs EIP-712 data, such as x402's ``EthAccountSigner``."""

    @property
    def address(self) -> str: ...

    def sign_typed_data(
        self, domain: TypedDataDomain, types: dict[str, list[Any]], primary_type: str, message: dict[str, Any]
    ) -> bytes: ...


@dataclass(frozen=True)
class _Deployment:
    """Contracts of base/commerce-payments: the holder of the money, and its collector."""

    escrow: str
    collector: str


#: Version 1.1, the default, and version 1.0.
_DEPLOYMENTS = (
    _Deployment("0xf96815976523E00e65Be8f34cA5e64b4f41EB19c", "0x8612dfdc421f80336cd14E8EF9cb1E765dB5ab88"),
    _Deployment("0xBdEA0D1bcC5966192B070Fdf62aB4EF5b4420cff", "0x0E3dF9510de65469C4518D7843919c0b8C7A7757"),
)


def trusted_operators(service: str) -> frozenset[str]:
    """Return the contracts that a service arbitrates, in lowercase: the only operators to pay.

    :param service: its origin, such as ``https://trust.example``
    :raises InputError: if it does not respond, or names no contract
    """
    url = f"{service.rstrip('/')}/escrow"
    try:
        contracts = json.loads(fetch(url))["contracts"]
        operators = frozenset(
            one["address"].lower() for one in contracts if one["scheme"] == AuthCaptureEvmScheme.scheme
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{url} is not the escrow policy of a trust service.") from None
    if operators:
        return operators
    raise InputError(f"{url} names no contract that the scheme auth-capture pays.")


class AuthCaptureEvmScheme:
    """Pays an operator of base/commerce-payments by EIP-3009.

    Register it: ``x402Client().register("eip155:*", AuthCaptureEvmScheme(account, operators=…))``. The client's own
    spending limits apply.
    """

    scheme = "auth-capture"
    find_default_asset = staticmethod(find_default_asset)

    def __init__(self, signer: LocalAccount | Signer, *, operators: Collection[str]) -> None:
        """
        :param signer: the payer
        :param operators: the only operators that may get the money. A merchant that names its own would get it
            without an arbiter.
        """
        self._signer: Signer = EthAccountSigner(signer) if isinstance(signer, LocalAccount) else signer
        self._operators = frozenset(operator.lower() for operator in operators)

    def create_payment_payload(self, requirements: PaymentRequirements) -> dict[str, Any]:
        """Sign a payment, whose nonce binds every term.

        :raises RefusedTerms: for terms that a buyer must not sign
        """
        extra = dict(requirements.extra)
        chain_id = _chain_id(requirements.network)
        deployment = _deployment(extra.get("authCaptureEscrow"))
        salt_nonce = secrets.randbits(256)
        receiver, policy = (_optional_address(extra, name) for name in ("receiverAuthorizer", "policy"))
        is_bound = (receiver, policy) != (ZERO_ADDRESS, ZERO_ADDRESS)
        salt = bound_salt(policy, salt_nonce, receiver) if is_bound else salt_nonce
        info = self._terms(requirements, extra, salt)
        nonce = payer_agnostic_nonce(chain_id, deployment.escrow, info)
        message = message_of(info, deployment.collector, nonce)
        domain = TypedDataDomain(
            name=_text(extra, "name"), version=_text(extra, "version"), chain_id=chain_id, verifying_contract=info.token
        )
        signature = self._signer.sign_typed_data(domain, TYPES, PRIMARY_TYPE, message)
        authorization = {
            "from": info.payer,
            "to": deployment.collector,
            "value": str(info.max_amount),
            "validAfter": "0",
            "validBefore": str(info.pre_approval_expiry),
            "nonce": f"0x{nonce.hex()}",
        }
        payload = {"authorization": authorization, "signature": f"0x{bytes(signature).hex()}", "salt": _word(salt)}
        return {**payload, "saltNonce": _word(salt_nonce)} if is_bound else payload

    def _terms(self, requirements: PaymentRequirements, extra: dict[str, Any], salt: int) -> PaymentInfo:
        operator = _address("extra.captureAuthorizer", extra.get("captureAuthorizer"))
        if operator.lower() not in self._operators:
            raise _refused("extra.captureAuthorizer", operator, f"one of {', '.join(sorted(self._operators))}")
        method = extra.get("assetTransferMethod", "eip3009")
        if method != "eip3009":
            raise _refused("extra.assetTransferMethod", method, "eip3009")
        for name in ("minFeeBps", "maxFeeBps"):
            if extra.get(name) != _FEE_BPS:
                raise _refused(f"extra.{name}", extra.get(name), str(_FEE_BPS))
        now = int(time.time())
        timeout = requirements.max_timeout_seconds
        if not 0 < timeout <= _LONGEST_AUTHORIZATION_SECONDS:
            raise _refused("maxTimeoutSeconds", timeout, f"1 to {_LONGEST_AUTHORIZATION_SECONDS}")
        pre_approval = now + timeout
        capture = _seconds(extra, "captureDeadline", pre_approval, now + _LONGEST_CAPTURE_SECONDS)
        amount = requirements.amount
        if not re.fullmatch(r"[1-9][0-9]{0,35}", amount):
            raise _refused("amount", amount, "a positive number of atomic units")
        return PaymentInfo(
            operator=operator,
            payer=to_checksum_address(self._signer.address),
            receiver=_address("payTo", requirements.pay_to),
            token=_address("asset", requirements.asset),
            max_amount=int(amount),
            pre_approval_expiry=pre_approval,
            authorization_expiry=capture,
            refund_expiry=_seconds(extra, "refundDeadline", capture, 2**48 - 1),
            min_fee_bps=_FEE_BPS,
            max_fee_bps=_FEE_BPS,
            fee_receiver=_address("extra.feeRecipient", extra.get("feeRecipient")),
            salt=salt,
        )


def _chain_id(network: str) -> int:
    match = re.fullmatch(r"eip155:([1-9][0-9]{0,15})", network)
    if match is None:
        raise _refused("network", network, "eip155 and a chain id")
    return int(match[1])


def _deployment(escrow: object) -> _Deployment:
    if escrow is None:
        return _DEPLOYMENTS[0]
    for one in _DEPLOYMENTS:
        if str(escrow).lower() == one.escrow.lower():
            return one
    raise _refused("extra.authCaptureEscrow", escrow, " or ".join(one.escrow for one in _DEPLOYMENTS))


def _optional_address(extra: dict[str, Any], name: str) -> str:
    value = extra.get(name)
    return ZERO_ADDRESS if value in (None, ZERO_ADDRESS) else _address(f"extra.{name}", value)


def _word(value: int) -> str:
    return f"0x{value:064x}"


def _seconds(extra: dict[str, Any], name: str, least: int, most: int) -> int:
    value = extra.get(name)
    if type(value) is int and least <= value <= most:
        return value
    raise _refused(f"extra.{name}", value, f"unix seconds from {least} to {most}")


def _text(extra: dict[str, Any], name: str) -> str:
    value = extra.get(name)
    if isinstance(value, str) and value != "":
        return value
    raise _refused(f"extra.{name}", value, "a string")


def _address(name: str, value: object) -> str:
    if isinstance(value, str) and is_address(value) and int(value, 16) != 0:
        return to_checksum_address(value)
    raise _refused(name, value, "a nonzero address")


def _refused(field: str, got: object, wanted: str) -> RefusedTerms:
    return RefusedTerms(f"These escrow terms are refused: {field} is {str(got)[:100]}, expected {wanted}.")
