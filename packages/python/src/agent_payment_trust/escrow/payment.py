"""Payments in headers, and whether they match an offer."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError
from eth_account import Account
from eth_account.messages import SignableMessage, encode_typed_data
from eth_utils.address import is_address, to_checksum_address
from eth_utils.crypto import keccak

from ..errors import Refusal
from ..strict_json import parse_unsigned_json
from .payment_info import TYPES, PaymentInfo, message_of, payer_agnostic_nonce, payment_id
from .terms import AUTH_CAPTURE, AUTHORIZATION_SECONDS, COMMERCE, FEE_BPS, MAX_TIMEOUT_SECONDS, Offer

#: The largest payment header, in bytes, with room for an ERC-1271 signature of 2 KiB.
_MAX_HEADER_BYTES = 16_384
#: The allowed clock difference between a merchant's machines, in seconds.
CLOCK_SKEW_SECONDS = 30
#: The minimum time for the arbiter to release, in seconds: one hour less than offered.
_LEAST_AUTHORIZATION_SECONDS = AUTHORIZATION_SECONDS - 3600
#: USDC refuses an account's signature with the higher s.
_HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_ERC_6492_SUFFIX = bytes.fromhex("6492" * 16)


class MalformedPayment(ValueError):
    """The header cannot be read: the buyer's client is at fault."""


class PaymentRefused(ValueError):
    """The payment buys nothing here: the buyer has to sign another one."""


@dataclass(frozen=True)
class Payment:
    """A payment that matches an offer."""

    offer: Offer
    info: PaymentInfo
    #: As sent, until it is checked; then in the form that the hold needs.
    signature: bytes
    #: The nonce in the salt's preimage, if the offer has a window.
    salt_nonce: int = 0

    @property
    def payer(self) -> str:
        return self.info.payer

    @property
    def id(self) -> bytes:
        return payment_id(self.offer.escrow.chain_id, self.offer.escrow.custody, self.info)


@dataclass(frozen=True)
class Header:
    """A payment as in its header. None of it has been checked."""

    #: Empty if the client omitted it.
    accepted: Mapping[str, Any]
    payload: Mapping[str, Any]
    #: The URL that the payment claims to be for; None without one.
    resource: Any

    def is_for(self, url: str) -> bool:
        """Return whether the resource that the payment names has this URL's path.

        The query is input, which a buyer may correct.
        """
        if self.resource is None:
            return True
        try:
            named = urlsplit(self.resource)
        except (AttributeError, TypeError, ValueError):
            return False
        return (named.path or "/") == (urlsplit(url).path or "/")


def decode_header(headers: Mapping[str, str]) -> Header | None:
    """Decode the payment header of a request. None without a payment.

    :raises MalformedPayment: if it cannot be read
    :raises PaymentRefused: if it is of version 1
    """
    header = headers.get("payment-signature")
    only_old = header is None
    header = headers.get("x-payment") if header is None else header
    if header is None:
        return None
    envelope = _decode(header)
    if envelope.get("x402Version") != 2:
        # A client of version 1 is shown the terms, which it cannot sign.
        kind = PaymentRefused if only_old else MalformedPayment
        raise kind("x402Version is not 2, but this sale takes version 2 only.")
    resource = envelope.get("resource")
    return Header(
        accepted=as_object(envelope.get("accepted", {}), "accepted"),
        payload=as_object(envelope.get("payload"), "payload"),
        resource=resource.get("url") if isinstance(resource, dict) else resource,
    )


def read_payment(header: Header, offers: Sequence[Offer], now: float) -> Payment:
    """Find the offer that a payment is for.

    :raises MalformedPayment: if it cannot be read
    :raises PaymentRefused: if it does not match an offer
    """
    accepted = header.accepted
    scheme = accepted.get("scheme", COMMERCE)
    offer = next((one for one in offers if one.escrow.scheme == scheme), None)
    if offer is None:
        raise mismatch("accepted.scheme", scheme, " or ".join(one.escrow.scheme for one in offers))
    check_form(header, offer)
    return _matching(offer, accepted, header.payload, now)


def check_form(header: Header, offer: Offer) -> None:
    """Check that a payment names no other network than the offer's, and contains no allowance.

    :raises PaymentRefused: if it names or contains one
    """
    network = offer.escrow.network
    if header.accepted.get("network", network) != network:
        raise mismatch("accepted.network", header.accepted["network"], network)
    if "permit2Authorization" in header.payload:
        raise mismatch("payload", "a permit2Authorization", "an EIP-3009 authorization alone")


def _matching(offer: Offer, accepted: Mapping[str, Any], payload: Mapping[str, Any], now: float) -> Payment:
    """Build the terms from the offer; the payment adds only its account, its expiries, and its salt."""
    escrow = offer.escrow
    order = as_object(payload.get("authorization"), "payload.authorization")
    if escrow.scheme == AUTH_CAPTURE:
        extra = as_object(accepted.get("extra"), "accepted.extra")
        expiries = extra.get("captureDeadline"), extra.get("refundDeadline")
        salt = payload.get("salt")
    else:
        stated = as_object(payload.get("paymentInfo"), "payload.paymentInfo")
        expiries = stated.get("authorizationExpiry"), stated.get("refundExpiry")
        salt = stated.get("salt")
    info = PaymentInfo(
        operator=escrow.address,
        payer=as_address(order.get("from"), "authorization.from"),
        receiver=offer.merchant,
        token=escrow.usdc.address,
        max_amount=offer.price,
        pre_approval_expiry=as_whole(order.get("validBefore"), 48, "authorization.validBefore"),
        authorization_expiry=as_whole(expiries[0], 48, "the release's deadline"),
        refund_expiry=as_whole(expiries[1], 48, "the refund's deadline"),
        min_fee_bps=FEE_BPS,
        max_fee_bps=FEE_BPS,
        fee_receiver=escrow.fee_receiver,
        salt=as_whole(salt, 256, "salt"),
    )
    _check_expiries(info, offer, now)
    salt_nonce = _bound_salt_nonce(payload, offer, info)
    wanted = message_of(info, escrow.collector, payer_agnostic_nonce(escrow.chain_id, escrow.custody, info))
    for name in ("to", "value", "validAfter", "nonce"):
        want = f"0x{wanted[name].hex()}" if name == "nonce" else str(wanted[name])
        if str(order.get(name)).lower() != want.lower():
            raise mismatch(f"authorization.{name}", order.get(name), want)
    signature = as_bytes(payload.get("signature", payload.get("collectorData")), "payload.signature")
    return Payment(offer, info, signature, salt_nonce)


def _bound_salt_nonce(payload: Mapping[str, Any], offer: Offer, info: PaymentInfo) -> int:
    """With a different salt, the payer could later claim that other conditions were offered."""
    given = payload.get("saltNonce")
    if offer.contest is None:
        if given is not None and offer.escrow.scheme == AUTH_CAPTURE:
            raise mismatch("payload.saltNonce", given, "none, because the offer does not bind the salt")
        return 0
    salt_nonce = 0 if given is None else as_whole(given, 256, "payload.saltNonce")
    if info.salt != offer.contest.salt(salt_nonce):
        raise mismatch("the salt", info.salt, "the hash of the offer's policy and payload.saltNonce")
    return salt_nonce


def _check_expiries(info: PaymentInfo, offer: Offer, now: float) -> None:
    """Check the expiries. Only upper bounds depend on the time, so that a payment accepted once remains accepted."""
    latest = int(now) + 1 + MAX_TIMEOUT_SECONDS + CLOCK_SKEW_SECONDS
    if info.pre_approval_expiry > latest:
        raise mismatch("authorization.validBefore", info.pre_approval_expiry, f"at most {latest}")
    least, most = info.pre_approval_expiry + _LEAST_AUTHORIZATION_SECONDS, latest + AUTHORIZATION_SECONDS
    if not least <= info.authorization_expiry <= most:
        raise mismatch("the release's deadline", info.authorization_expiry, f"{least} to {most}")
    if offer.contest is not None:
        end = info.authorization_expiry + offer.contest.refund_seconds
        if info.refund_expiry != end:
            raise mismatch("the refund's deadline", info.refund_expiry, end)
        return
    end = info.authorization_expiry + AUTHORIZATION_SECONDS
    if not info.authorization_expiry <= info.refund_expiry <= end:
        raise mismatch("the refund's deadline", info.refund_expiry, f"{info.authorization_expiry} to {end}")


def account_signature(payment: Payment) -> bytes | None:
    """Return the payer's own signature in the form that USDC accepts, or None if an account did not sign."""
    form = _account_form(unwrapped(payment.signature))
    if form is None or int.from_bytes(form[32:64], "big") > _HALF_ORDER:
        return None
    try:
        signer = Account.recover_message(_message(payment), signature=form)
    except Exception:  # eth-keys raises several kinds for bytes that are not a signature
        return None
    return form if signer == payment.info.payer else None


def digest_of(payment: Payment) -> bytes:
    """Return the EIP-712 digest that the payer signs."""
    message = _message(payment)
    return keccak(b"\x19" + message.version + message.header + message.body)


def unwrapped(signature: bytes) -> bytes:
    """Return the signature that a deployed wallet checks (ERC-1271), without its ERC-6492 wrapping if it has one."""
    if not signature.endswith(_ERC_6492_SUFFIX):
        return signature
    try:
        inner: bytes = decode(["address", "bytes", "bytes"], signature[:-32])[2]
    except DecodingError:
        return b""
    # A contract would decode a second wrapping, and make the call that the payer names.
    return b"" if inner.endswith(_ERC_6492_SUFFIX) else inner


def _message(payment: Payment) -> SignableMessage:
    escrow, info = payment.offer.escrow, payment.info
    domain = {
        "name": escrow.usdc.name,
        "version": escrow.usdc.version,
        "chainId": escrow.chain_id,
        "verifyingContract": escrow.usdc.address,
    }
    nonce = payer_agnostic_nonce(escrow.chain_id, escrow.custody, info)
    return encode_typed_data(domain, TYPES, message_of(info, escrow.collector, nonce))


def _account_form(signature: bytes) -> bytes | None:
    """Return r, s, and a v of 27 or 28. Wallets also write v as 0 or 1, or into the highest bit of s (ERC-2098)."""
    if len(signature) == 64:
        s = int.from_bytes(signature[32:], "big")
        return signature[:32] + (s % 2**255).to_bytes(32, "big") + bytes([27 + (s >> 255)])
    if len(signature) != 65 or signature[64] not in (0, 1, 27, 28):
        return None
    return signature[:64] + bytes([27 + signature[64] % 27])


def _decode(header: str) -> Mapping[str, Any]:
    """Decode the JSON of a header: base64 or base64url, with or without padding."""
    if len(header) > _MAX_HEADER_BYTES:
        raise MalformedPayment(f"The payment header has {len(header)} bytes; the limit is {_MAX_HEADER_BYTES}.")
    text = header.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        value = parse_unsigned_json(base64.b64decode(text + "=" * (-len(text) % 4), validate=True))
    except (ValueError, Refusal) as error:
        raise MalformedPayment(f"The payment header is not base64-encoded JSON: {error}.") from None
    return as_object(value, "the payment")


def as_object(value: object, name: str) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    raise MalformedPayment(f"{name} is not a JSON object.")


def as_address(value: object, name: str) -> str:
    if isinstance(value, str) and is_address(value.lower()):
        return to_checksum_address(value.lower())
    raise MalformedPayment(f"{name} is not an address: 0x and 40 hex digits.")


def as_bytes(value: object, name: str) -> bytes:
    if isinstance(value, str) and re.fullmatch(r"0x([0-9a-fA-F]{2}){1,4096}", value):
        return bytes.fromhex(value[2:])
    raise MalformedPayment(f"{name} is not hex.")


def as_whole(value: object, bits: int, name: str) -> int:
    """Parse a whole number from a decimal string, a hex string, or a JSON number."""
    number = value if type(value) is int else -1
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,78}|0x[0-9a-fA-F]{1,64}", value):
        number = int(value, 16 if value.startswith("0x") else 10)
    if 0 <= number < 2**bits:
        return number
    raise MalformedPayment(f"{name} is not a whole number of at most {bits} bits.")


def mismatch(field: str, got: object, wanted: object) -> PaymentRefused:
    return PaymentRefused(f"The payment does not match the offer: {field} is {str(got)[:100]}, expected {wanted}.")
