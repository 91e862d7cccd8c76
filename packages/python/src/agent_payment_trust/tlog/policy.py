"""The logs and witnesses to trust (C2SP tlog-policy)."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass, field

from ..errors import Refusal, quote
from .checkpoint import Checkpoint, parse_checkpoint
from .keys import COSIGNATURE, ED25519, VerifierKey, parse_verifier_key
from .note import parse_note, verify_note

_MAX_BYTES = 1_048_576
_NONE = "none"


@dataclass(frozen=True)
class Rule:
    """Met by ``witness`` if it cosigned, or else by ``least`` of the ``members``."""

    witness: str | None = None
    least: int = 0
    members: tuple[Rule, ...] = ()

    def is_met(self, signed: Set[str]) -> bool:
        if self.witness is not None:
            return self.witness in signed
        return sum(member.is_met(signed) for member in self.members) >= self.least


@dataclass(frozen=True)
class Policy:
    """Any of these logs is trusted once its checkpoint is witnessed."""

    logs: tuple[VerifierKey, ...]
    #: By their names in the file.
    witnesses: dict[str, VerifierKey]
    #: None if no cosignature is required (``quorum none``).
    quorum: Rule | None


@dataclass(frozen=True)
class Witnessed:
    """A checkpoint whose signatures satisfy a policy."""

    checkpoint: Checkpoint
    #: The witnesses that cosigned it, each with the POSIX time of its newest cosignature; 0 without a stated time.
    witnesses: dict[str, int]


def verify_checkpoint(source: str | bytes, policy: Policy) -> Witnessed:
    """Check a signed checkpoint: its log's signature, every signature of a named witness, and the quorum.

    :raises Refusal: ``unknown_log``, ``quorum_not_met``, or the code for a note that does not verify
    """
    note = parse_note(source)
    checkpoint = parse_checkpoint(note.text)
    trusted = [key for key in policy.logs if key.name == checkpoint.origin]
    if not trusted:
        raise Refusal("unknown_log", f"the policy does not name the log {quote(checkpoint.origin)}")
    found = verify_note(note, [*trusted, *policy.witnesses.values()])
    signed = {one.key.vkey for one in found}
    if not any(key.vkey in signed for key in trusted):
        raise Refusal("note_not_signed", f"the checkpoint is not signed by its log {quote(checkpoint.origin)}")
    cosigned = {
        name: max(one.seconds or 0 for one in found if one.key.vkey == key.vkey)
        for name, key in policy.witnesses.items()
        if key.vkey in signed
    }
    if policy.quorum is not None and not policy.quorum.is_met(signed):
        names = ", ".join(quote(name) for name in cosigned) or "no witness"
        raise Refusal("quorum_not_met", f"the checkpoint lacks the policy's quorum; cosigned by: {names}")
    return Witnessed(checkpoint, cosigned)


@dataclass
class _Draft:
    """The part of the file that has been read."""

    logs: list[VerifierKey] = field(default_factory=list)
    witnesses: dict[str, VerifierKey] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)
    quorum: Rule | None = None
    has_quorum: bool = False


def parse_policy(source: str | bytes) -> Policy:
    """Parse a policy file.

    :raises Refusal: ``malformed_policy``, with the line
    """
    data = source.encode() if isinstance(source, str) else source
    if len(data) > _MAX_BYTES:
        raise Refusal("malformed_policy", "the policy is longer than 1 MiB")
    draft = _Draft()
    # Each octet is one character, so that names are compared octet by octet.
    for number, line in enumerate(data.decode("latin-1").split("\n"), start=1):
        try:
            if re.search(r"[\x00-\x08\x0b-\x1f\x7f]", line):
                raise ValueError("it has a control character")
            words = [word for word in re.split(r"[ \t]+", line) if word]
            if words and not words[0].startswith("#"):
                _read_line(words, draft)
        except ValueError as error:
            raise Refusal("malformed_policy", f"line {number} of the policy: {error}") from None
    if not draft.has_quorum:
        raise Refusal("malformed_policy", "the policy has no quorum line")
    return Policy(tuple(draft.logs), draft.witnesses, draft.quorum)


def _read_line(words: list[str], draft: _Draft) -> None:
    keyword, rest = words[0], words[1:]
    if keyword == "log":
        if not 1 <= len(rest) <= 2:
            raise ValueError("expected log <vkey> [<url>]")
        key = _read_key(rest[0], draft.logs)
        if key.type == COSIGNATURE:
            raise ValueError("the key of a log is not a witness's (signature type 4)")
        draft.logs.append(key)
    elif keyword == "witness":
        if not 2 <= len(rest) <= 3:
            raise ValueError("expected witness <name> <vkey> [<url>]")
        key = _read_key(rest[1], list(draft.witnesses.values()))
        if key.type == ED25519:
            raise ValueError("the key of a witness has signature type 4 or 6, not 1")
        _define(rest[0], Rule(witness=key.vkey), draft)
        draft.witnesses[rest[0]] = key
    elif keyword == "group":
        _read_group(rest, draft)
    elif keyword == "quorum":
        if len(rest) != 1:
            raise ValueError("expected quorum <name>")
        if draft.has_quorum:
            raise ValueError("there is already a quorum line")
        draft.quorum = None if rest[0] == _NONE else _rule_of(rest[0], draft)
        draft.has_quorum = True
    else:
        raise ValueError(f"{quote(keyword)} is not log, witness, group, or quorum")


def _read_group(words: list[str], draft: _Draft) -> None:
    if len(words) < 3:
        raise ValueError("expected group <name> all|any|<k> <name>...")
    name, threshold, *names = words
    members = []
    for member in names:
        if member in draft.members:
            raise ValueError(f"{quote(member)} is already a member of a group")
        draft.members.add(member)
        members.append(_rule_of(member, draft))
    least = {"all": len(names), "any": 1}.get(threshold)
    if least is None and re.fullmatch(r"[1-9][0-9]{0,4}", threshold):
        least = int(threshold)
    if least is None or least > len(names):
        raise ValueError(f"{quote(threshold)} is not all, any, or a number from 1 to {len(names)}")
    _define(name, Rule(least=least, members=tuple(members)), draft)


def _define(name: str, rule: Rule, draft: _Draft) -> None:
    if name == _NONE or name in draft.rules:
        raise ValueError(f"the name {quote(name)} is taken")
    draft.rules[name] = rule


def _rule_of(name: str, draft: _Draft) -> Rule:
    if name not in draft.rules:
        raise ValueError(f"no line before defines {quote(name)}")
    return draft.rules[name]


def _read_key(text: str, known: list[VerifierKey]) -> VerifierKey:
    """Parse a key. Each public key may represent only one log or witness, whatever its name."""
    key = parse_verifier_key(text.encode("latin-1").decode("utf-8", "replace"))
    if any(one.public_key == key.public_key for one in known):
        raise ValueError(f"the public key of {quote(key.name)} is named twice")
    return key
