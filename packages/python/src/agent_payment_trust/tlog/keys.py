"""Keys of logs and witnesses (C2SP signed-note), and the messages that they sign (C2SP tlog-cosignature)."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from ..encodings import from_base64
from ..errors import Refusal, quote
from .checkpoint import parse_checkpoint

#: The supported signature types of C2SP signed-note.
ED25519, COSIGNATURE, ML_DSA_44 = 0x01, 0x04, 0x06
_KEY_SIZE = {ED25519: 32, COSIGNATURE: 32, ML_DSA_44: 1312}
#: The size of the timestamp before the signature itself, in bytes.
_TIME_SIZE = {ED25519: 0, COSIGNATURE: 8, ML_DSA_44: 8}
_SIGNATURE_SIZE = {ED25519: 64, COSIGNATURE: 64, ML_DSA_44: 2420}
#: The last second that the TypeScript verifier can print as a date.
_LAST_SECOND = 8_640_000_000_000


@dataclass(frozen=True)
class VerifierKey:
    """The contents of a ``vkey``: a log's origin or a witness's name, and its public key."""

    name: str
    id: str
    type: int
    public_key: bytes
    vkey: str


def is_key_name(name: str) -> bool:
    """Return whether a name is free of white space of any script, plus signs, and control characters."""
    return name != "" and not any(char.isspace() or char in "+\ufeff" or _is_control(char) for char in name)


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cs")


def parse_verifier_key(vkey: str) -> VerifierKey:
    """Parse a vkey, such as ``example.com/foo+530d903a+AekyeRrm56h…``.

    :raises Refusal: ``malformed_vkey``, or ``unsupported_signature_type`` for an unsupported type
    """
    match = re.fullmatch(r"([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/]+=*)", vkey, re.ASCII)
    data = None if match is None else from_base64(match[3])
    if match is None or not data:
        raise Refusal("malformed_vkey", f"{quote(vkey)} is not a vkey: name+keyid+base64")
    name, key_id, kind, public_key = match[1], match[2], data[0], data[1:]
    if kind not in _KEY_SIZE:
        raise Refusal(
            "unsupported_signature_type", f"the vkey of {quote(name)} has signature type {kind}, not 1, 4, or 6"
        )
    if not is_key_name(name):
        raise Refusal("malformed_vkey", f"{quote(name)} is not a key name: no spaces and no plus")
    if len(public_key) != _KEY_SIZE[kind]:
        raise Refusal("malformed_vkey", f"a key of this type has {_KEY_SIZE[kind]} bytes, not {len(public_key)}")
    computed = hashlib.sha256(f"{name}\n".encode() + data).digest()[:4].hex()
    if computed != key_id:
        raise Refusal("malformed_vkey", f"the key ID of {quote(name)} is {computed}, not {key_id}")
    return VerifierKey(name, key_id, kind, public_key, vkey)


def check_signature(key: VerifierKey, text: str, signature: bytes) -> int | None:
    """Check one signature of a note. Return a cosignature's POSIX time, or None for a log's own signature.

    :raises Refusal: ``note_signature_mismatch``, or ``unsupported_signature_type`` without ML-DSA-44
    """
    timed = _TIME_SIZE[key.type]
    expected = timed + _SIGNATURE_SIZE[key.type]
    if len(signature) != expected:
        raise _mismatch(key, f"has {len(signature)} bytes, expected {expected}")
    seconds = int.from_bytes(signature[:timed], "big")
    if seconds > _LAST_SECOND:
        raise _mismatch(key, "has an invalid time")
    if not _holds(key, signature[timed:], _signed_message(key, text, seconds)):
        raise _mismatch(key, "does not verify")
    return None if timed == 0 else seconds


def _signed_message(key: VerifierKey, text: str, seconds: int) -> bytes:
    """Return the signed bytes. A log's key signs the text itself; a cosigner's key signs a checkpoint at a time."""
    if key.type == ED25519:
        return text.encode()
    checkpoint = parse_checkpoint(text)
    if key.type == COSIGNATURE:
        return f"cosignature/v1\ntime {seconds}\n{text}".encode()
    numbers = (0).to_bytes(8, "big") + checkpoint.size.to_bytes(8, "big")
    head = b"subtree/v1\n\0" + _short_text(key.name) + seconds.to_bytes(8, "big")
    return head + _short_text(checkpoint.origin) + numbers + checkpoint.root


def _short_text(text: str) -> bytes:
    data = text.encode()
    if len(data) > 255:
        raise Refusal("malformed_checkpoint", "a name or an origin has more than 255 bytes")
    return bytes([len(data)]) + data


def _holds(key: VerifierKey, signature: bytes, message: bytes) -> bool:
    try:
        if key.type == ML_DSA_44:
            _verify_ml_dsa(key, signature, message)
        else:
            Ed25519PublicKey.from_public_bytes(key.public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _verify_ml_dsa(key: VerifierKey, signature: bytes, message: bytes) -> None:
    reason = f"this Python cannot check the ML-DSA-44 key of {quote(key.name)}: install a newer cryptography"
    try:
        from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey

        public_key = MLDSA44PublicKey.from_public_bytes(key.public_key)
    except (ImportError, UnsupportedAlgorithm) as error:
        raise Refusal("unsupported_signature_type", reason) from error
    public_key.verify(signature, message)


def _mismatch(key: VerifierKey, reason: str) -> Refusal:
    return Refusal("note_signature_mismatch", f"the signature of {quote(key.name)} (key {key.id}) {reason}")
