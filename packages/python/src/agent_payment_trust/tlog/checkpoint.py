"""The head of a log's tree (C2SP tlog-checkpoint)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from ..encodings import from_base64
from ..errors import Refusal, quote

HASH_SIZE = 32
_EMPTY_ROOT = hashlib.sha256(b"").digest()
_MAX_SAFE_INTEGER = 2**53 - 1


@dataclass(frozen=True)
class Checkpoint:
    origin: str
    #: The number of entries in the tree.
    size: int
    root: bytes


def parse_checkpoint(text: str) -> Checkpoint:
    """Parse the text of a checkpoint's note, without signatures.

    :raises Refusal: ``malformed_checkpoint``
    """
    lines = text.split("\n")
    if lines.pop() != "":
        raise _malformed("the checkpoint does not end with a newline")
    if "" in lines:
        raise _malformed("the checkpoint has an empty line")
    if len(lines) < 3:
        raise _malformed(f"the checkpoint has {len(lines)} lines: expected origin, size and root")
    origin, digits, encoded = lines[:3]
    size = parse_index(digits)
    if size is None:
        raise _malformed(f"the tree size {quote(digits)} is not a whole number below 2^53 without leading zeros")
    root = from_base64(encoded)
    if root is None or len(root) != HASH_SIZE:
        raise _malformed(f"the root {quote(encoded)} is not 32 bytes in base64")
    if size == 0 and root != _EMPTY_ROOT:
        raise _malformed("the root of an empty tree is not SHA-256 of nothing")
    return Checkpoint(origin, size, root)


def parse_index(digits: str) -> int | None:
    """Parse a whole number below 2^53 without leading zeros, or return None."""
    value = int(digits) if re.fullmatch(r"0|[1-9][0-9]{0,15}", digits) else -1
    return value if 0 <= value <= _MAX_SAFE_INTEGER else None


def _malformed(reason: str) -> Refusal:
    return Refusal("malformed_checkpoint", reason)
