"""The arbiter's published rules for deliveries (``GET /escrow``)."""

from __future__ import annotations

import json
import re
from typing import NoReturn

from .delivery import Delivery

_JSON_TYPE = re.compile(r"\s*|(?:application|text)/json|[^\s/;,]+/[^\s/;,]+\+json", re.IGNORECASE)


def refund_reason(delivery: Delivery) -> str | None:
    """Return the reason why the arbiter refunds a delivery, or None if it releases.

    Call this only for a body without a content coding.
    """
    if delivery.status in (400, 422):
        return "The merchant answered 400 or 422: it refused the buyer's input."
    if delivery.status >= 400:
        return "The merchant answered with a status of 400 or more."
    if delivery.body.decode("utf-8", "replace").strip() == "":
        return "The body is empty, or nothing but white space."
    media_type = re.split(r"[;,]", delivery.header("content-type"))[0].strip()
    if _JSON_TYPE.fullmatch(media_type) is None:
        return None
    try:
        value = json.loads(delivery.body.decode("utf-8-sig"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return "The body is not valid JSON in UTF-8, and its content type is JSON or not stated."
    if _says_error(value):
        return "The body is a JSON object that reports an error at its top level."
    return None


def is_coded(delivery: Delivery) -> bool:
    """Return whether the body has a content coding, which only the arbiter decodes."""
    return delivery.header("content-encoding").strip().lower() not in ("", "identity")


def _says_error(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    is_set = [value.get(name) not in (None, "", []) and value.get(name) is not False for name in ("error", "errors")]
    return any(is_set) or value.get("success") is False


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
