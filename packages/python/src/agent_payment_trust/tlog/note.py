"""Signed notes (C2SP signed-note)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..encodings import from_base64
from ..errors import Refusal, quote
from .keys import VerifierKey, check_signature, is_key_name

#: A larger note is refused before it is parsed. Sixteen ML-DSA-44 signatures take 60,000 bytes.
_MAX_NOTE_BYTES = 1_000_000
_MAX_SIGNATURES = 100


@dataclass(frozen=True)
class NoteSignature:
    name: str
    key_id: str
    signature: bytes


@dataclass(frozen=True)
class ParsedNote:
    """A note whose form has been checked, but none of its signatures."""

    #: The signed text, including its last newline.
    text: str
    signatures: tuple[NoteSignature, ...]


@dataclass(frozen=True)
class VerifiedSignature:
    key: VerifierKey
    #: The POSIX time of a cosignature; None for a log's own signature.
    seconds: int | None


def parse_note(source: str | bytes) -> ParsedNote:
    """Split a note into its text and its signatures.

    :raises Refusal: ``malformed_note``
    """
    if len(source) > _MAX_NOTE_BYTES:
        raise _malformed(f"it is longer than {_MAX_NOTE_BYTES} bytes")
    try:
        note = source if isinstance(source, str) else source.decode("utf-8")
        note.encode("utf-8")
    except UnicodeError:
        raise _malformed("it is not UTF-8 text") from None
    if re.search(r"[\x00-\x09\x0b-\x1f]", note):
        raise _malformed("it has a control character")
    split = note.rfind("\n\n")
    if split == -1:
        raise _malformed("no empty line separates its text from its signatures")
    lines = note[split + 2 :].split("\n")
    if lines.pop() != "":
        raise _malformed("its last signature does not end with a newline")
    if not 0 < len(lines) <= _MAX_SIGNATURES:
        raise _malformed(f"it has {len(lines)} signatures, expected 1 to {_MAX_SIGNATURES}")
    return ParsedNote(note[: split + 1], tuple(_parse_signature(line) for line in lines))


def verify_note(note: ParsedNote, keys: Sequence[VerifierKey]) -> tuple[VerifiedSignature, ...]:
    """Check every signature of a note by a known key.

    :raises Refusal: ``note_signature_mismatch`` if one of them does not verify; ``note_not_signed`` if there is none
    """
    known = {(key.name, key.id): key for key in keys}
    if len(known) < len({key.vkey for key in keys}):
        raise Refusal("malformed_vkey", "two different keys have the same name and key ID")
    found = []
    for line in note.signatures:
        key = known.get((line.name, line.key_id))
        if key is not None:
            found.append(VerifiedSignature(key, check_signature(key, note.text, line.signature)))
    if not found:
        names = ", ".join(quote(key.name) for key in keys)
        raise Refusal("note_not_signed", f"the note is not signed by any of {names}")
    return tuple(found)


def _parse_signature(line: str) -> NoteSignature:
    match = re.fullmatch(r"\u2014 ([^ ]+) ([A-Za-z0-9+/]+=*)", line)
    data = None if match is None else from_base64(match[2])
    if match is None or data is None or len(data) < 5 or not is_key_name(match[1]):
        raise _malformed(f"{quote(line)} is not a signature: a dash, a name, and a key ID with a signature in base64")
    return NoteSignature(match[1], data[:4].hex(), data[4:])


def _malformed(reason: str) -> Refusal:
    return Refusal("malformed_note", f"the note cannot be read: {reason}")
