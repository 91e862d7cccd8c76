"""The keys that a command trusts."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from datetime import datetime

from ..errors import InputError, quote
from ..issuer import Issuer, origin_of, parse_issuer
from ..key_set import KeySet, parse_key_set
from ..sources import is_url, read_source
from ..times import parse_time


@dataclass(frozen=True)
class Trust:
    keys: KeySet
    #: The ``did:web`` identifier of the expected signer; None for any holder of a key.
    issuer: str | None
    at: datetime | None
    keys_from: str
    #: The reason why the keys are trusted.
    because: str


def add_trust_options(parser: ArgumentParser) -> None:
    parser.add_argument("--issuer", metavar="ORIGIN", help="the expected signer, like https://trust.example")
    parser.add_argument("--jwks", metavar="FILE", help="the trusted keys, a file or URL; no others are fetched")
    parser.add_argument("--at", metavar="TIME", help="judge freshness as of this time, like 2026-11-21T09:30:00Z")


def read_trust(options: Namespace) -> Trust:
    """Read the keys of ``--jwks``, else of ``--issuer``, else of the origin that served the source.

    :raises InputError: if none is given, or the keys cannot be read
    """
    at = None if options.at is None else parse_time(options.at)
    if options.at is not None and at is None:
        raise InputError(f"--at {quote(options.at)} is not a UTC time like 2026-11-21T09:30:00Z")
    issuer = None if options.issuer is None else parse_issuer(options.issuer)
    if options.jwks is not None:
        keys = parse_key_set(read_source(options.jwks))
        return Trust(keys, None if issuer is None else issuer.did, at, options.jwks, "--jwks names these keys")
    if issuer is not None:
        return _fetched(issuer, at, "--issuer names this issuer")
    if is_url(options.source):
        own = parse_issuer(origin_of(options.source) or options.source)
        return _fetched(own, at, "the document was read from this origin")
    raise InputError(
        "Which issuer do you expect? A document that names its own issuer proves nothing; add --issuer or --jwks."
    )


def _fetched(issuer: Issuer, at: datetime | None, because: str) -> Trust:
    url = issuer.key_set_url
    return Trust(parse_key_set(read_source(url)), issuer.did, at, url, because)
