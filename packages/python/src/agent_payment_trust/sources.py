"""Files, addresses, and standard input."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from .errors import InputError, quote

_TIMEOUT_SECONDS = 10.0
_MAX_BYTES = 1_048_576
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def is_url(source: str) -> bool:
    return re.match(r"https?://", source, re.IGNORECASE) is not None


def read_source(source: str) -> bytes:
    """Return the bytes of a file, of an address, or, for ``-``, of standard input.

    :raises InputError: if it cannot be read
    """
    if is_url(source):
        return fetch(source)
    try:
        return sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise InputError(f"{quote(source)} cannot be read: {error.strerror}") from None


def fetch(url: str, timeout: float = _TIMEOUT_SECONDS) -> bytes:
    """Fetch the body at an https address (http only on this machine): at most 1 MiB, without redirects.

    :param timeout: in seconds, for the whole request

    :raises InputError: if it cannot be read
    """
    import httpx

    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        raise InputError(f"{quote(url)} is not a URL") from None
    if parts.scheme.lower() != "https" and host not in _LOOPBACK:
        raise InputError(f"{quote(url)} was not fetched: expected https (http only on this machine)")
    until = time.monotonic() + timeout
    body = bytearray()
    try:
        with httpx.stream("GET", url, timeout=timeout, headers={"accept": "application/json"}) as response:
            if response.status_code != 200:
                raise InputError(f"{quote(url)} returned status {response.status_code}")
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > _MAX_BYTES:
                    raise InputError(f"{quote(url)} cannot be read: more than 1 MiB")
                if time.monotonic() > until:
                    raise InputError(f"{quote(url)} cannot be read within {timeout:g} seconds")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise InputError(f"{quote(url)} cannot be read: {type(error).__name__} {quote(str(error))}") from None
    return bytes(body)
