"""The two ways in which a check can end without a result."""

from __future__ import annotations

import json
import re


class Refusal(Exception):
    """A document is not valid. ``code`` is stable; the text is for people."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class InputError(Exception):
    """A mistake of the caller: a key set, issuer, or address that is invalid or cannot be read."""


def quote(value: object) -> str:
    """Return untrusted data, truncated and safe to print on a terminal."""
    text = "missing" if value is None else json.dumps(value, separators=(",", ":"), default=str)
    return re.sub(r"[^\x20-\x7e]", lambda match: f"\\u{ord(match[0]):04x}", text[:120])
