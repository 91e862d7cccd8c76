"""Base64, base64url, and base58btc, each in its one canonical form."""

from __future__ import annotations

import base64
import re

_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?", re.ASCII)
_BASE64URL = re.compile(r"(?:[\w-]{4})*(?:[\w-][AQgw]|[\w-]{2}[AEIMQUYcgkosw048])?", re.ASCII)
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def from_base64(text: str) -> bytes | None:
    """Return the bytes (RFC 4648, section 4), or None: other encodings of the same bytes are refused."""
    return base64.b64decode(text) if _BASE64.fullmatch(text) else None


def from_base64url(text: str) -> bytes | None:
    """Return the bytes of unpadded base64url, or None for empty text and other encodings of the same bytes."""
    if text == "" or not _BASE64URL.fullmatch(text):
        return None
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def to_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def from_base58(text: str, length: int) -> bytes | None:
    """Return the bytes of base58btc, or None if the text is invalid or does not have ``length`` bytes."""
    if len(text) > length * 1.4 + 1:
        return None
    value = 0
    for char in text:
        digit = _BASE58.find(char)
        if digit == -1:
            return None
        value = value * 58 + digit
    if value >= 256**length:
        return None
    data = value.to_bytes(length, "big")
    # Each leading zero byte is written as a 1.
    zeros = len(data) - len(data.lstrip(b"\0"))
    return data if len(text) - len(text.lstrip("1")) == zeros else None
