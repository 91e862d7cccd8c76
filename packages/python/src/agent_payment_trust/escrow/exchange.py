"""Whole requests and whole responses, independent of their connection."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, MutableMapping
from typing import Any, TypeAlias

from fastapi import Request, Response

from .delivery import MAX_BODY_BYTES, Delivery, failure
from .seller import MAX_REQUEST_BYTES, TooLarge

logger = logging.getLogger("agent_payment_trust.escrow")

Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]
_Message = MutableMapping[str, Any]

#: Removed, so that a handler returns the whole. Otherwise anyone could have an empty 304 delivered and refunded.
_CONDITIONAL = re.compile(rb"if-.*|range", re.IGNORECASE)


async def received(request: Request) -> Request:
    """Return the request with all of its body, so that the handler does not depend on the buyer's connection.

    :raises Exception: if the buyer hung up
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_REQUEST_BYTES:
            raise TooLarge
    headers = [one for one in request.scope["headers"] if not _CONDITIONAL.fullmatch(one[0])]
    sent = asyncio.Event()

    async def receive() -> _Message:
        if not sent.is_set():
            sent.set()
            return {"type": "http.request", "body": bytes(body), "more_body": False}
        # The handler never sees the buyer hang up.
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    return Request({**request.scope, "headers": headers}, receive)


async def delivered(request: Request, handler: Handler) -> Delivery:
    """Return a handler's response. If it raises, use the application's handler for that exception, or a 500."""
    try:
        response = await handler(request)
    except Exception as error:
        handlers = request.app.exception_handlers
        handle = next((handlers[kind] for kind in type(error).__mro__ if kind in handlers), None)
        if handle is None:
            logger.exception("A handler raised.")
            return failure("Internal Server Error")
        answer = handle(request, error)
        response = await answer if asyncio.iscoroutine(answer) else answer
    return await _read(request, response)


async def _read(request: Request, response: Response) -> Delivery:
    """Read any kind of response to its end."""
    start: _Message = {}
    body = bytearray()

    async def send(message: _Message) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
        elif len(body) <= MAX_BODY_BYTES:
            body.extend(message.get("body", b""))

    try:
        await response(request.scope, request.receive, send)
    except Exception:
        logger.exception("A response broke off.")
        return failure("The merchant's response broke off.")
    if len(body) > MAX_BODY_BYTES:
        return failure(f"The merchant's response is larger than {MAX_BODY_BYTES} bytes, the largest to be evaluated.")
    headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in start["headers"])
    return Delivery(start["status"], headers, bytes(body))


def response_of(delivery: Delivery) -> Response:
    response = Response(delivery.body, delivery.status)
    own = {"content-length", "transfer-encoding", "connection"}
    kept = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in delivery.headers if name not in own]
    response.raw_headers = [*kept, (b"content-length", str(len(delivery.body)).encode())]
    return response
