"""Contests before the release: their conditions, and their window."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from eth_abi.abi import encode
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak

from ..strict_json import jcs
from .payment_info import bound_salt

#: The longest window, in seconds.
LONGEST_CONTEST_SECONDS = 1200
#: The time between the end of a window and minute 30 of a hold, reserved for the release, in seconds.
CONTEST_ROOM_SECONDS = 120
_MOST_CONDITIONS_BYTES = 1024
_A_DAY = 86_400
_TERMS_TYPEHASH = keccak(text="ContestTerms(uint32 contestSeconds,bytes32 conditionsSha256)")


@dataclass(frozen=True)
class ContestTerms:
    """A window from the evaluation of a delivery, and the merchant's promises."""

    seconds: int
    conditions: dict[str, dict[str, Any]]

    @property
    def conditions_sha256(self) -> bytes:
        return hashlib.sha256(jcs(self.conditions)).digest()

    @property
    def policy(self) -> str:
        """Return the ``policy`` of an offer: the hash of these terms, truncated to an address."""
        terms = [_TERMS_TYPEHASH, self.seconds, self.conditions_sha256]
        return to_checksum_address(keccak(encode(["bytes32", "uint32", "bytes32"], terms))[-20:])

    @property
    def offered(self) -> dict[str, Any]:
        """Return the members of an offer's ``extra``."""
        return {"policy": self.policy, "contest": {"seconds": self.seconds, "conditions": self.conditions}}

    @property
    def refund_seconds(self) -> int:
        """Return the distance from the release's deadline to the refund's, in seconds."""
        return _A_DAY + self.seconds

    def salt(self, salt_nonce: int) -> int:
        """Return the salt of a payment under these terms, which the payer's signature binds."""
        return bound_salt(self.policy, salt_nonce)

    def on_wire(self, salt_nonce: int) -> dict[str, Any]:
        """Return the contest in a forwarded body."""
        salt = f"0x{salt_nonce:064x}"
        return {"seconds": self.seconds, "conditions": self.conditions, "salt_nonce": salt}


def parse_contest(seconds: int, conditions: Mapping[str, Mapping[str, Any]] | None) -> ContestTerms | None:
    """Parse the options ``contest_seconds`` and ``contest_conditions``. None for no window.

    :raises ValueError: for terms that the service does not accept
    """
    if type(seconds) is not int or not 0 <= seconds <= LONGEST_CONTEST_SECONDS:
        raise ValueError(f"contest_seconds is {seconds!r}, expected 0 to {LONGEST_CONTEST_SECONDS}.")
    if seconds == 0:
        if conditions is None:
            return None
        raise ValueError("contest_conditions requires contest_seconds: without a window, no buyer could contest.")
    for category, fields in (conditions or {}).items():
        _check(category, fields)
    given = {category: dict(fields) for category, fields in (conditions or {}).items()}
    length = len(jcs(given))
    if length > _MOST_CONDITIONS_BYTES:
        raise ValueError(f"contest_conditions take {length} bytes of JSON, expected at most {_MOST_CONDITIONS_BYTES}.")
    return ContestTerms(seconds, given)


def _check(category: str, fields: object) -> None:
    if category not in ("expect", "http-delivery"):
        raise ValueError(f'contest_conditions[{category!r}] is unknown, expected "expect" or "http-delivery".')
    name = f"contest_conditions[{category!r}]"
    if not isinstance(fields, Mapping):
        raise ValueError(f"{name} is not an object.")
    url = fields.get("url")
    if category == "http-delivery" and (not isinstance(url, str) or not urlsplit(url).netloc):
        raise ValueError(f"{name}['url'] is {url!r}, expected an absolute URL.")
    promised = {field: value for field, value in fields.items() if category == "expect" or field != "url"}
    for field, value in promised.items():
        if not _fits(field, value):
            raise ValueError(
                f"{name}[{field!r}] is {value!r}, expected expect_status, expect_sha256, min_bytes, or "
                "expect_contains with a fitting value."
            )
    if category == "expect" and not promised:
        raise ValueError(f"{name} has no condition.")


def _fits(field: str, value: object) -> bool:
    if field == "expect_status":
        return type(value) is int and 200 <= value <= 599
    if field == "expect_sha256":
        return isinstance(value, str) and re.fullmatch(r"(0x)?[0-9a-fA-F]{64}", value) is not None
    if field == "min_bytes":
        return type(value) is int and 0 <= value < 2**53
    return field == "expect_contains" and isinstance(value, str) and value != ""
