"""What a merchant offers: the same goods for the same price through each contract that the service arbitrates."""

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
#: The least that the contracts hold, in atomic units of USDC.
LEAST_AMOUNT = 10_000
#: How long a signed authorization stays valid, in seconds.
MAX_TIMEOUT_SECONDS = 120
#: How long the arbiter has for a release, in seconds.
AUTHORIZATION_SECONDS = 86_400
#: How long after the hold anyone may refund it, in seconds.
REFUNDABLE_AFTER_SECONDS = 1800


@dataclass(frozen=True)
class Token:
    """The token that pays; name and version are those of its EIP-712 domain."""

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
    #: What holds the money: ids and nonces bind it.
    custody: str
    #: What the payer signs the money over to.
    collector: str
    usdc: Token
    fee_receiver: str
    #: Name and version of the EIP-712 domain of deliveries.
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
    #: What its buyer may contest before the release; None for nothing.
    contest: ContestTerms | None = None


def common_requirements(offer: Offer, scheme: str) -> dict[str, Any]:
    """What terms of every scheme state."""
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
    """The x402 version 2 payment requirements of an offer; their expiries count from ``now``, in Unix seconds."""
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
            # A day after the authorization's, and the window.
            "refundExpirySeconds": seconds + 2 * AUTHORIZATION_SECONDS + (0 if contest is None else contest.seconds),
            **offered,
        },
    }


def parse_price(price: str) -> int:
    """A price in atomic units of USDC.

    :param price: US dollars with at most 6 decimals, like ``"0.10"``
    :raises ValueError: if it is not one, or below the least amount that the contracts hold
    """
    match = re.fullmatch(r"([0-9]{1,30})(?:\.([0-9]{1,6}))?", price)
    atomic = 0 if match is None else int(match[1]) * 1_000_000 + int((match[2] or "").ljust(6, "0"))
    if match is None or atomic < LEAST_AMOUNT:
        raise ValueError(f'The price is {price!r}; expected US dollars of at least "0.01", like "0.10".')
    return atomic
