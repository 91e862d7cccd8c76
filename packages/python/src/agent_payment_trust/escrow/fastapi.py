"""Sell routes of FastAPI through the escrow.

::

    shop = APIRouter(route_class=escrowed(account=account, rpc_url=…, arbiter_url=…, price="0.10"))

    @shop.post("/haiku")
    def haiku(): ...
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

from fastapi import Request, Response
from fastapi.routing import APIRoute

from .delivery import MAX_BODY_BYTES, Delivery, failure, too_large
from .seller import MAX_REQUEST_BYTES, Asked, Options, Seller, TooLarge

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger("agent_payment_trust.escrow")

Validate = Callable[[Request], Awaitable[str | None] | str | None]
_Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]
_Message = MutableMapping[str, Any]

#: Removed, so that a handler returns the whole. Otherwise anyone could have an empty 304 delivered and refunded.
_CONDITIONAL = re.compile(rb"if-.*|range", re.IGNORECASE)


def escrowed(*, validate: Validate | None = None, **options: Unpack[Options]) -> type[APIRoute]:
    """Return the route class of escrowed routes: ``APIRouter(route_class=escrowed(…))``.

    An unpaid request gets a 402 with the terms. A paid one is held on the chain, then handled, and its response goes to
    the arbiter, which releases or refunds the money. A handler finds the payment's id in
    ``request.state.escrow_payment_id``.

    :param account: the merchant, which receives the payments, signs deliveries, and sends the holds. A function is
        called once, on the first request, so that loading the program needs no key
    :param rpc_url: JSON-RPC of the chain to sell on, or a function as for ``account``
    :param arbiter_url: the trust service, such as ``https://trust.example``
    :param price: US dollars like ``"0.10"``
    :param validate: refuses a request with a text, before anything is held for it. If it raises, the server returns a
        500
    :param origin: the origin that buyers use, if it differs from the request's
    :param least_seconds_left: the number of seconds of an earlier hold's 30 minutes that must be left when the handler
        starts; 1200 by default
    :param contest_seconds: the number of seconds after a good delivery in which its buyer may contest it, up to 1200
    :param contest_conditions: your promises about the response (``expect``) or about a public URL (``http-delivery``)
    :param exact: whether ordinary buyers can pay as well, by a last term of the scheme ``exact``, which pays the
        merchant immediately. Its buyer has no hold, no arbiter, and no refund, and the terms state this
    :param store: the store for deliveries; in the memory of the process by default. Several processes need a shared
        one, such as ``PostgresStore``
    :raises ValueError: for an invalid price, origin, contest, or ``least_seconds_left``
    """
    seller = Seller(**options).start()

    async def serve(request: Request, handler: _Handler) -> Response:
        whole = request

        async def receive() -> None:
            nonlocal whole
            whole = await _received(request)

        async def check() -> str | None:
            refusal = None if validate is None else validate(whole)
            return refusal if refusal is None or isinstance(refusal, str) else await refusal

        def run(payment_id: str) -> Any:  # noqa: ANN401
            whole.state.escrow_payment_id = payment_id
            return _delivered(whole, handler)

        url = str(request.url)
        return _response_of(await seller.serve(Asked(request.method, url, request.headers, receive, check, run)))

    class EscrowedRoute(APIRoute):
        def get_route_handler(self) -> _Handler:
            handler = super().get_route_handler()

            async def sold(request: Request) -> Response:
                return await serve(request, handler)

            return sold

    return EscrowedRoute


async def _received(request: Request) -> Request:
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


async def _delivered(request: Request, handler: _Handler) -> Delivery:
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
        return too_large()
    headers = tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in start["headers"])
    return Delivery(start["status"], headers, bytes(body))


def _response_of(delivery: Delivery) -> Response:
    response = Response(delivery.body, delivery.status)
    kept = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in delivery.end_to_end]
    response.raw_headers = [*kept, (b"content-length", str(len(delivery.body)).encode())]
    return response
