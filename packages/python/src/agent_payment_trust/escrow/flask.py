"""Sell views of Flask through the escrow.

::

    sold = escrowed(account=account, rpc_url=…, arbiter_url=…, price="0.10")

    @app.post("/haiku")
    @sold
    def haiku(): ...
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import re
import threading
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from flask import Response, current_app, g, request
from werkzeug.exceptions import RequestEntityTooLarge

from .delivery import MAX_BODY_BYTES, Delivery, failure, too_large
from .seller import MAX_REQUEST_BYTES, Asked, Options, Seller, TooLarge

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger("agent_payment_trust.escrow")

View = Callable[..., Any]
Validate = Callable[[], "str | None"]
_T = TypeVar("_T")

#: Removed, so that a view returns the whole. Otherwise anyone could have an empty 304 delivered and refunded.
_CONDITIONAL = re.compile(r"HTTP_(IF_.*|RANGE)")


def escrowed(*, validate: Validate | None = None, **options: Unpack[Options]) -> Callable[[View], View]:
    """Return a decorator for views, to be placed below the route's.

    It works like ``agent_payment_trust.escrow.fastapi.escrowed``. A view finds the payment's id in
    ``g.escrow_payment_id``.

    :param validate: refuses the current ``request`` with a text, before anything is held for it
    :raises ValueError: for an invalid price, origin, contest, or ``least_seconds_left``
    """
    lock = threading.Lock()
    sellers: dict[int, Seller] = {}

    # Faults of the options are reported when the program starts.
    Seller(**options).start()

    def seller() -> Seller:
        """Return this process's seller. A server may fork after it has loaded the program."""
        with lock:
            if os.getpid() not in sellers:
                sellers[os.getpid()] = Seller(**options)
            return sellers[os.getpid()]

    def decorate(view: View) -> View:
        @wraps(view)
        def sold(*args: Any, **kwargs: Any) -> Response:  # noqa: ANN401
            selling = seller()

            def run(payment_id: str) -> Delivery:
                g.escrow_payment_id = payment_id
                for name in [name for name in request.environ if _CONDITIONAL.fullmatch(name)]:
                    del request.environ[name]
                return _delivered(view, args, kwargs)

            asked = Asked(
                request.method,
                request.url,
                request.headers,
                receive=_in_request(_receive),
                validate=_in_request(validate or (lambda: None)),
                run=_in_request(run),
            )
            return _response_of(_wait_for(selling.serve(asked)))

        return sold

    return decorate


def _in_request(call: Callable[..., _T]) -> Callable[..., Coroutine[Any, Any, _T]]:
    """Run a call in a thread with the request's context, as Flask runs views."""

    context = contextvars.copy_context()

    async def called(*args: Any) -> _T:  # noqa: ANN401
        return await asyncio.to_thread(lambda: context.copy().run(call, *args))

    return called


def _receive() -> None:
    """Read all of the body, so that the view does not depend on the buyer's connection."""
    if (request.content_length or 0) > MAX_REQUEST_BYTES:
        raise TooLarge
    request.max_content_length = MAX_REQUEST_BYTES
    try:
        request.get_data(cache=True)
    except RequestEntityTooLarge:
        raise TooLarge from None


def _delivered(view: View, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Delivery:
    """Return a view's response. If it raises, use the application's handler for that exception, or a 500."""
    try:
        response = current_app.make_response(current_app.ensure_sync(view)(*args, **kwargs))
    except Exception as error:
        try:
            response = current_app.make_response(current_app.handle_user_exception(error))
        except Exception:
            logger.exception("A view raised.")
            return failure("Internal Server Error")
    body = bytearray()
    response.direct_passthrough = False
    try:
        for part in response.iter_encoded():
            body += part
            if len(body) > MAX_BODY_BYTES:
                return too_large()
    except Exception:
        logger.exception("A response broke off.")
        return failure("The merchant's response broke off.")
    finally:
        response.close()
    headers = tuple((name.lower(), value) for name, value in response.headers)
    return Delivery(response.status_code, headers, bytes(body))


def _response_of(delivery: Delivery) -> Response:
    response = Response(delivery.body, delivery.status)
    response.headers.clear()
    response.headers.extend(delivery.end_to_end)
    response.headers["content-length"] = str(len(delivery.body))
    return response


_loops: dict[int, asyncio.AbstractEventLoop] = {}
_loops_lock = threading.Lock()


def _wait_for(work: Coroutine[Any, Any, _T]) -> _T:
    """Run asynchronous work to its end. All sales of a process share one loop, in a separate thread."""
    with _loops_lock:
        loop = _loops.get(os.getpid())
        if loop is None:
            loop = asyncio.new_event_loop()
            _loops[os.getpid()] = loop
            threading.Thread(target=loop.run_forever, name="escrow", daemon=True).start()
    return asyncio.run_coroutine_threadsafe(work, loop).result()
