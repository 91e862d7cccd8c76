"""Times in documents, and the freshness of a document."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Literal

from .errors import Refusal
from .strict_json import JsonObject

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z", re.ASCII)
#: The allowed difference between the clocks of issuer and verifier at the start of a document's validity.
_SKEW = timedelta(minutes=1)


@dataclass(frozen=True)
class Freshness:
    """The validity period that a document states. ``unknown`` means that its signature is not valid."""

    state: Literal["unknown", "not_yet_valid", "no_expiry", "current", "expired"]
    from_: str | None = None
    until: str | None = None


def parse_time(text: object) -> datetime | None:
    """Parse a UTC time like ``2026-11-21T09:30:00Z``, or return None."""
    if not isinstance(text, str) or not _TIME.fullmatch(text):
        return None
    whole, _, fraction = text[:-1].partition(".")
    try:
        at = datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return at + timedelta(milliseconds=int(fraction.ljust(3, "0") or 0))


def freshness(document: JsonObject, created: str, at: datetime) -> Freshness:
    """Judge a document that is valid from ``validFrom`` (or its signing) until ``validUntil``, exclusive.

    :raises Refusal: ``malformed_document``
    """
    valid_from = document.get("validFrom", created)
    start = _time("validFrom", valid_from)
    until = document.get("validUntil")
    end = _time("validUntil", until) if "validUntil" in document else None
    if at < start - _SKEW:
        return Freshness("not_yet_valid", valid_from)
    if end is None:
        return Freshness("no_expiry", valid_from)
    return Freshness("current" if at < end else "expired", valid_from, until)


def _time(name: str, text: object) -> datetime:
    at = parse_time(text)
    if at is None:
        raise Refusal("malformed_document", f"{name} is not a UTC time like 2026-11-21T09:30:00Z")
    return at
