"""The terms of one payment, as base/commerce-payments names and hashes them."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import Any

from eth_abi.abi import encode
from eth_utils.crypto import keccak

ZERO_ADDRESS = "0x" + "0" * 40
#: The struct's members, in the order that contracts expect.
MEMBERS = (
    ("operator", "address"),
    ("payer", "address"),
    ("receiver", "address"),
    ("token", "address"),
    ("maxAmount", "uint120"),
    ("preApprovalExpiry", "uint48"),
    ("authorizationExpiry", "uint48"),
    ("refundExpiry", "uint48"),
    ("minFeeBps", "uint16"),
    ("maxFeeBps", "uint16"),
    ("feeReceiver", "address"),
    ("salt", "uint256"),
)
_SALT_TYPEHASH = keccak(text="x402AuthCaptureSaltBinding(address receiverAuthorizer,address policy,uint256 saltNonce)")
_TYPEHASH = keccak(text=f"PaymentInfo({','.join(f'{kind} {name}' for name, kind in MEMBERS)})")


@dataclass(frozen=True)
class PaymentInfo:
    """The terms of a payment. Amounts are atomic units, times unix seconds."""

    operator: str
    payer: str
    receiver: str
    token: str
    max_amount: int
    pre_approval_expiry: int
    authorization_expiry: int
    refund_expiry: int
    min_fee_bps: int
    max_fee_bps: int
    fee_receiver: str
    salt: int

    def as_tuple(self) -> tuple[object, ...]:
        """Return the struct in the form that contracts expect."""
        return astuple(self)


def payment_id(chain_id: int, custody: str, info: PaymentInfo) -> bytes:
    """Return the payment's id: the hash of its terms, the chain, and the contract that holds the money."""
    kinds = ["bytes32", *(kind for _, kind in MEMBERS)]
    terms = keccak(encode(kinds, [_TYPEHASH, *info.as_tuple()]))
    return keccak(encode(["uint256", "address", "bytes32"], [chain_id, custody, terms]))


def payer_agnostic_nonce(chain_id: int, custody: str, info: PaymentInfo) -> bytes:
    """Return the nonce of the payer's authorization: the id with a zero payer."""
    return payment_id(chain_id, custody, replace(info, payer=ZERO_ADDRESS))


def bound_salt(policy: str, salt_nonce: int, receiver_authorizer: str = ZERO_ADDRESS) -> int:
    """Return the salt that binds these addresses into the payer's signature."""
    members = [_SALT_TYPEHASH, receiver_authorizer, policy, salt_nonce]
    return int.from_bytes(keccak(encode(["bytes32", "address", "address", "uint256"], members)), "big")


#: USDC's ``ReceiveWithAuthorization`` (EIP-3009), whose nonce binds every term of a payment.
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
