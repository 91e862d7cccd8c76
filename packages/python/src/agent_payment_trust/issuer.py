"""Signers, by origin or by ``did:web`` identifier."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from .errors import InputError, quote

_DID_WEB = re.compile(r"did:web:((?:[a-z0-9-]+\.)*[a-z0-9-]+)(?:%3A(\d{1,5}))?", re.ASCII)


@dataclass(frozen=True)
class Issuer:
    """One host, as a ``did:web`` identifier and as the origin that serves its keys."""

    did: str
    origin: str

    @property
    def key_set_url(self) -> str:
        return f"{self.origin}/.well-known/jwks.json"


def parse_issuer(text: str) -> Issuer:
    """Parse an issuer from its origin (``https://trust.example``) or its identifier (``did:web:trust.example``).

    Plain http is allowed for ``localhost`` only.

    :raises InputError: for anything else
    """
    issuer = issuer_of_did(text) if text.startswith("did:") else _issuer_of_origin(text)
    if issuer is not None:
        return issuer
    raise InputError(
        f"{quote(text)} is not an issuer: expected an origin like https://trust.example (http only for localhost, no "
        "IP address, no path) or its did:web identifier"
    )


def issuer_of_did(did: str) -> Issuer | None:
    """Return the issuer that a ``did:web`` identifier without a path names, or None."""
    match = _DID_WEB.fullmatch(did)
    if match is None:
        return None
    host, port = match[1], match[2]
    if re.fullmatch(r"[\d.]+", host) or int(port or 0) > 65_535:
        return None
    scheme = "http" if host == "localhost" else "https"
    return Issuer(did, f"{scheme}://{host}" if port is None else f"{scheme}://{host}:{port}")


def origin_of(url: str) -> str | None:
    """Return the origin of an http URL without a user, in lowercase and without a default port, or None."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    scheme, host = parts.scheme.lower(), parts.hostname
    if scheme not in ("http", "https") or not host or "@" in parts.netloc:
        return None
    default = {"http": 80, "https": 443}[scheme]
    return f"{scheme}://{host}" if port in (None, default) else f"{scheme}://{host}:{port}"


def _issuer_of_origin(text: str) -> Issuer | None:
    origin = origin_of(text)
    if origin is None or re.search(r"[?#\s\\]", text) or urlsplit(text).path not in ("", "/"):
        return None
    issuer = issuer_of_did(f"did:web:{origin.split('://')[1].replace(':', '%3A')}")
    return issuer if issuer is not None and issuer.origin == origin else None
