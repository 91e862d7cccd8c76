"""Whether an entry is in a log (C2SP tlog-proof)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from ..encodings import from_base64
from ..errors import Refusal, quote
from .checkpoint import HASH_SIZE, Checkpoint, parse_index
from .policy import Policy, verify_checkpoint

_HEADER = "c2sp.org/tlog-proof@v1"
#: No tree of up to 2^53 entries needs more.
_MAX_HASHES = 53
_MAX_BYTES = 2_000_000


@dataclass(frozen=True)
class LogProof:
    """A proof, with everything needed except the entry and the trusted keys."""

    #: The index of the entry, from 0.
    index: int
    #: From the entry's neighbor up to the root's child.
    hashes: tuple[bytes, ...]
    #: The signed checkpoint with its cosignatures.
    checkpoint: str
    #: Extra data, which the log does not sign. Ours adds the entry's bytes.
    extra: bytes | None


@dataclass(frozen=True)
class Proven:
    """The result of a valid proof."""

    index: int
    checkpoint: Checkpoint
    witnesses: dict[str, int]


def parse_proof(source: str | bytes) -> LogProof:
    """Parse the text of a ``.tlog-proof``.

    :raises Refusal: ``malformed_log_proof``
    """
    if len(source) > _MAX_BYTES:
        raise _malformed(f"it is longer than {_MAX_BYTES} bytes")
    try:
        text = source if isinstance(source, str) else source.decode("utf-8")
    except UnicodeDecodeError:
        raise _malformed("it is not UTF-8 text") from None
    head, separator, checkpoint = text.partition("\n\n")
    if separator == "":
        raise _malformed("no empty line separates it from its checkpoint")
    header, *lines = head.split("\n")
    if header != _HEADER:
        raise _malformed(f"it begins with {quote(header)}, expected {quote(_HEADER)}")
    extra = _parse_extra(lines.pop(0)) if lines and lines[0].startswith("extra ") else None
    line = lines.pop(0) if lines else ""
    index = parse_index(line[len("index ") :]) if line.startswith("index ") else None
    if index is None:
        raise _malformed("it names no index")
    if len(lines) > _MAX_HASHES:
        raise _malformed(f"it has more than {_MAX_HASHES} hashes")
    return LogProof(index, tuple(_parse_hash(one) for one in lines), checkpoint, extra)


def verify_proof(proof: LogProof, leaf: bytes, policy: Policy) -> Proven:
    """Check that an entry with this hash is in the log, at the proof's index, as the policy requires.

    :raises Refusal: with the reason
    """
    witnessed = verify_checkpoint(proof.checkpoint, policy)
    _verify_inclusion(proof, leaf, witnessed.checkpoint)
    return Proven(proof.index, witnessed.checkpoint, witnessed.witnesses)


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of an entry (RFC 6962, section 2.1)."""
    return hashlib.sha256(b"\0" + entry).digest()


def _verify_inclusion(proof: LogProof, leaf: bytes, checkpoint: Checkpoint) -> None:
    if proof.index >= checkpoint.size:
        raise _mismatch(f"a tree of {checkpoint.size} entries has no entry {proof.index}")
    position, last, root = proof.index, checkpoint.size - 1, leaf
    for sibling in proof.hashes:
        if last == 0:
            raise _mismatch("the inclusion proof has more hashes than the tree levels")
        if position % 2 == 1 or position == last:
            root = _node_hash(sibling, root)
            while position % 2 == 0 and position != 0:
                position, last = position // 2, last // 2
        else:
            root = _node_hash(root, sibling)
        position, last = position // 2, last // 2
    if last != 0:
        raise _mismatch("the inclusion proof has fewer hashes than the tree levels")
    if root != checkpoint.root:
        raise _mismatch(f"the inclusion proof leads from entry {proof.index} to a different root")


def _node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def _parse_extra(line: str) -> bytes:
    data = from_base64(line[len("extra ") :])
    if data:
        return data
    raise _malformed("its extra data is not base64")


def _parse_hash(line: str) -> bytes:
    data = from_base64(line)
    if data is not None and len(data) == HASH_SIZE:
        return data
    raise _malformed(f"{quote(line)} is not a hash of 32 bytes in base64")


def _malformed(reason: str) -> Refusal:
    return Refusal("malformed_log_proof", f"the proof cannot be read: {reason}")


def _mismatch(reason: str) -> Refusal:
    return Refusal("inclusion_mismatch", reason)
