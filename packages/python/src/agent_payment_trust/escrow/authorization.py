"""USDC's ``ReceiveWithAuthorization`` (EIP-3009), whose nonce binds every term of a payment."""

from __future__ import annotations

from typing import Any

from .payment_info import PaymentInfo

PRIMARY_TYPE = "ReceiveWithAuthorization"
TYPES = {
    PRIMARY_TYPE: [
        {"name": "from", "type": "address"},
        {"name": "to", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
    ]
}


def message_of(info: PaymentInfo, collector: str, nonce: bytes) -> dict[str, Any]:
    """Return the authorization for the payer to sign over to the collector, which alone can redeem it."""
    return {
        "from": info.payer,
        "to": collector,
        "value": info.max_amount,
        "validAfter": 0,
        "validBefore": info.pre_approval_expiry,
        "nonce": nonce,
    }
