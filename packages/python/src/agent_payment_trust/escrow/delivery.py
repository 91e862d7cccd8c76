"""A merchant's delivery, in the form for the arbiter."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eth_account.signers.local import LocalAccount

from .terms import Offer

#: The largest body to deliver, in bytes.
MAX_BODY_BYTES = 256 * 1024
_TYPES = {
    "Delivery": [
        {"name": "paymentId", "type": "bytes32"},
        {"name": "status", "type": "uint16"},
        {"name": "bodySha256", "type": "bytes32"},
        {"name": "contentType", "type": "string"},
        {"name": "contentEncoding", "type": "string"},
        {"name": "contestSeconds", "type": "uint32"},
        {"name": "conditionsSha256", "type": "bytes32"},
    ]
}


@dataclass(frozen=True)
class Delivery:
    """A handler's response, as the buyer gets it. Header names are in lowercase."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        """Return the value of a header; empty if it is absent."""
        return next((value for one, value in self.headers if one == name), "")

    @property
    def end_to_end(self) -> tuple[tuple[str, str], ...]:
        """Return the headers that a server does not write itself."""
        own = ("content-length", "transfer-encoding", "connection")
        return tuple(one for one in self.headers if one[0] not in own)

    def passed_on(self, headers: Mapping[str, str]) -> Delivery:
        """Return a handler's response with these headers added or replaced."""
        cached = {} if self.header("cache-control") else {"cache-control": "no-store"}
        added = {**headers, **cached}
        others = tuple(one for one in self.headers if one[0] not in added)
        return Delivery(self.status, (*others, *added.items()), self.body)


def failure(error: str) -> Delivery:
    """Return a 500 with this error, which the arbiter refunds."""
    return Delivery(500, (("content-type", "application/json"),), json.dumps({"error": error}).encode())


def too_large() -> Delivery:
    return failure(f"The merchant's response is larger than {MAX_BODY_BYTES} bytes, the largest to be evaluated.")


def encoded(value: object) -> str:
    """Return JSON in base64, as in a header."""
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode("ascii")


def sign_delivery(account: LocalAccount, offer: Offer, payment_id: bytes, delivery: Delivery) -> str:
    """Return the merchant's EIP-712 signature of a delivery.

    It binds the payment, the status, the body with its type and coding, and the payer's contest.
    """
    escrow, contest = offer.escrow, offer.contest
    name, version = escrow.delivery_domain
    signed = account.sign_typed_data(
        {"name": name, "version": version, "chainId": escrow.chain_id, "verifyingContract": escrow.address},
        _TYPES,
        {
            "paymentId": payment_id,
            "status": delivery.status,
            "bodySha256": hashlib.sha256(delivery.body).digest(),
            "contentType": delivery.header("content-type"),
            "contentEncoding": delivery.header("content-encoding"),
            "contestSeconds": 0 if contest is None else contest.seconds,
            "conditionsSha256": bytes(32) if contest is None else contest.conditions_sha256,
        },
    )
    return f"0x{bytes(signed.signature).hex()}"


def signed_for_buyer(account: LocalAccount, offer: Offer, payment_id: bytes, delivery: Delivery) -> str:
    """Return the header ``X-Escrow-Delivery``: the forwarded delivery, signed for the buyer.

    Two different ones refund the payment.
    """
    signed = {
        "status": delivery.status,
        "body_sha256": f"0x{hashlib.sha256(delivery.body).hexdigest()}",
        "content_type": delivery.header("content-type"),
        "content_encoding": delivery.header("content-encoding"),
        "signature": sign_delivery(account, offer, payment_id, delivery),
    }
    return encoded(signed)


def on_wire(delivery: Delivery) -> dict[str, Any]:
    """Return a delivery in the arbiter's form, with only those headers that describe the body."""
    described = {
        name: value
        for name, value in delivery.headers
        if name in ("content-type", "content-encoding", "content-language")
    }
    form = {"status": delivery.status, "headers": described}
    try:
        text = delivery.body.decode("utf-8")
        # Control characters take less space in base64 than in JSON.
        is_short = len(json.dumps(text, ensure_ascii=False).encode()) <= len(delivery.body) * 1.4 + 64
    except UnicodeDecodeError:
        is_short = False
    return {**form, "body": text} if is_short else {**form, "body_base64": base64.b64encode(delivery.body).decode()}
