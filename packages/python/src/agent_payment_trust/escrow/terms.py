"""A merchant's offers: the same goods for the same price through each contract that the service arbitrates."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from eth_utils.address import to_checksum_address

from .contest import ContestTerms

AUTH_CAPTURE, COMMERCE = "auth-capture", "commerce"
#: The fee that the contracts require: 1% of a release.
FEE_BPS = 100
#: The minimum amount that the contracts hold, in atomic units of USDC.
LEAST_AMOUNT = 10_000
#: The time for which a signed authorization is valid, in seconds.
MAX_TIMEOUT_SECONDS = 120
#: The remaining validity that an authorization needs for its transaction to be mined, in seconds.
LEAST_SECONDS_VALID = 6
#: The time that the arbiter has for a release, in seconds.
AUTHORIZATION_SECONDS = 86_400
#: The time after the hold from which anyone may refund it, in seconds.
REFUNDABLE_AFTER_SECONDS = 1800


@dataclass(frozen=True)
class Token:
    """The token that pays, with the name and version of its EIP-712 domain."""

    address: str
    name: str
    version: str


@dataclass(frozen=True)
class EscrowFacts:
    """A contract that sells through the arbiter, and its roles."""

    #: The x402 scheme that pays it.
    scheme: str
    chain_id: int
    #: The ``operator`` of its payments, which is called to hold them. Deliveries are signed for it.
    address: str
    #: The contract that holds the money: ids and nonces bind it.
    custody: str
    #: The contract that the payer signs the money over to.
    collector: str
    usdc: Token
    fee_receiver: str
    #: Name and version of the EIP-712 domain for deliveries.
    delivery_domain: tuple[str, str]

    @property
    def network(self) -> str:
        return f"eip155:{self.chain_id}"


@dataclass(frozen=True)
class Offer:
    escrow: EscrowFacts
    merchant: str
    #: Atomic units of USDC.
    price: int
    #: The contest that its buyer may bring before the release, if any.
    contest: ContestTerms | None = None


def common_requirements(offer: Offer, scheme: str) -> dict[str, Any]:
    """Return the members that the terms of every scheme share."""
    escrow = offer.escrow
    return {
        "scheme": scheme,
        "network": escrow.network,
        "amount": str(offer.price),
        "asset": to_checksum_address(escrow.usdc.address),
        "payTo": to_checksum_address(offer.merchant),
        "maxTimeoutSeconds": MAX_TIMEOUT_SECONDS,
    }


def requirements(offer: Offer, now: float) -> dict[str, Any]:
    """Return an offer's x402 version 2 payment requirements; they expire relative to ``now``, in Unix seconds."""
    escrow, seconds, contest = offer.escrow, math.ceil(now), offer.contest
    offered = {} if contest is None else contest.offered
    common = common_requirements(offer, escrow.scheme)
    token = {"name": escrow.usdc.name, "version": escrow.usdc.version}
    fee = {"minFeeBps": FEE_BPS, "maxFeeBps": FEE_BPS}
    address, receiver = to_checksum_address(escrow.address), to_checksum_address(escrow.fee_receiver)
    if escrow.scheme == AUTH_CAPTURE:
        deadline = seconds + AUTHORIZATION_SECONDS + MAX_TIMEOUT_SECONDS
        return {
            **common,
            "extra": {
                **token,
                "authCaptureEscrow": to_checksum_address(escrow.custody),
                "captureAuthorizer": address,
                "operatorType": "custom",
                "paymentFlow": "escrow",
                # Its default, "sync", would leave the hold of a custom operator to its payer.
                "captureMode": "deferred",
                "assetTransferMethod": "eip3009",
                "captureDeadline": deadline,
                "refundDeadline": deadline + (0 if contest is None else contest.refund_seconds),
                "feeRecipient": receiver,
                **fee,
                **offered,
            },
        }
    return {
        **common,
        "extra": {
            **token,
            "escrowAddress": address,
            "operatorAddress": address,
            "tokenCollector": address,
            "settlementMethod": "authorize",
            **fee,
            "feeReceiver": receiver,
            "preApprovalExpirySeconds": seconds + MAX_TIMEOUT_SECONDS,
            "authorizationExpirySeconds": seconds + AUTHORIZATION_SECONDS,
            # A day after the authorization's expiry, plus the window.
            "refundExpirySeconds": seconds + 2 * AUTHORIZATION_SECONDS + (0 if contest is None else contest.seconds),
            **offered,
        },
    }


def parse_price(price: str) -> int:
    """Return a price in atomic units of USDC.

    :param price: US dollars with at most 6 decimals, like ``"0.10"``
    :raises ValueError: if it is not a price, or below the contracts' minimum
    """
    match = re.fullmatch(r"([0-9]{1,30})(?:\.([0-9]{1,6}))?", price)
    atomic = 0 if match is None else int(match[1]) * 1_000_000 + int((match[2] or "").ljust(6, "0"))
    if match is None or atomic < LEAST_AMOUNT:
        raise ValueError(f'The price is {price!r}; expected US dollars of at least "0.01", like "0.10".')
    return atomic
