"""Ordinary payments of the x402 scheme ``exact``, directly to the merchant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from .payment import CLOCK_SKEW_SECONDS, Header, as_address, as_bytes, as_object, as_whole, check_form, mismatch
from .terms import LEAST_SECONDS_VALID, MAX_TIMEOUT_SECONDS, Offer, common_requirements

EXACT = "exact"
#: The protection that a buyer gives up, for clients that show terms.
_LOSES = "Paid to the merchant immediately, without a hold, an arbiter's evaluation, or a refund."


@dataclass(frozen=True)
class ExactPayment:
    """An authorization (EIP-3009) that matches an offer. Its signature has not been checked yet."""

    offer: Offer
    payer: str
    payee: str
    value: int
    #: Unix seconds.
    valid_after: int
    valid_before: int
    nonce: bytes
    signature: bytes

    @property
    def id(self) -> bytes:
        """Return the key of the authorization in the store, and for the handler."""
        escrow = self.offer.escrow
        kinds = ["uint256", "address", "address", "bytes32"]
        return keccak(encode(kinds, [escrow.chain_id, escrow.usdc.address, self.payer, self.nonce]))

    def too_late(self, now: float) -> str | None:
        """Return the reason why the authorization can no longer be mined in time, or None if it can."""
        least = int(now) + 1 + LEAST_SECONDS_VALID
        if self.valid_before >= least:
            return None
        return str(mismatch("authorization.validBefore", self.valid_before, f"at least {least}"))


def exact_requirements(offer: Offer) -> dict[str, Any]:
    """Return the x402 version 2 payment requirements of the same sale without the escrow."""
    usdc = offer.escrow.usdc
    extra = {"name": usdc.name, "version": usdc.version, "withoutEscrow": _LOSES}
    return {**common_requirements(offer, EXACT), "extra": extra}


def read_exact(header: Header, offer: Offer, now: float) -> ExactPayment:
    """Read an ordinary payment and compare it with the offer. An expired one may have been settled in time.

    :raises MalformedPayment: if it cannot be read
    :raises PaymentRefused: if it does not match the offer
    """
    order = as_object(header.payload.get("authorization"), "payload.authorization")
    nonce = as_bytes(order.get("nonce"), "authorization.nonce")
    payment = ExactPayment(
        offer=offer,
        payer=as_address(order.get("from"), "authorization.from"),
        payee=as_address(order.get("to"), "authorization.to"),
        value=as_whole(order.get("value"), 256, "authorization.value"),
        valid_after=as_whole(order.get("validAfter"), 256, "authorization.validAfter"),
        valid_before=as_whole(order.get("validBefore"), 256, "authorization.validBefore"),
        nonce=nonce,
        signature=as_bytes(header.payload.get("signature"), "payload.signature"),
    )
    check_form(header, offer)
    if len(nonce) != 32:
        raise mismatch("authorization.nonce", f"0x{nonce.hex()}", "32 bytes")
    if payment.payee.lower() != offer.merchant.lower():
        raise mismatch("authorization.to", payment.payee, offer.merchant)
    if payment.value != offer.price:
        raise mismatch("authorization.value", payment.value, offer.price)
    if payment.valid_after > int(now):
        raise mismatch("authorization.validAfter", payment.valid_after, f"at most {int(now)}")
    latest = int(now) + MAX_TIMEOUT_SECONDS + CLOCK_SKEW_SECONDS
    if payment.valid_before > latest:
        raise mismatch("authorization.validBefore", payment.valid_before, f"at most {latest}")
    return payment
