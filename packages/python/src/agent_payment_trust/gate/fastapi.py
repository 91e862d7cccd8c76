"""The gate for FastAPI and Starlette."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from x402.http.middleware.fastapi import payment_middleware as stock_middleware
from x402.http.types import RoutesConfig
from x402.schemas import AbortResult
from x402.schemas.hooks import VerifyContext
from x402.server import x402ResourceServer

from .judge import CURRENT, NOT_JUDGED, Gate, Judgment, Refused, with_head

_Next = Callable[[Request], Awaitable[Response]]


def payment_middleware(
    routes: RoutesConfig,
    server: x402ResourceServer,
    *,
    service: str,
    require: str | Sequence[str] = "verified",
    **options: Any,  # noqa: ANN401
) -> Callable[[Request, _Next], Awaitable[Response]]:
    """Return x402's middleware, for verified wallets only: ``app.middleware("http")(payment_middleware(…))``.

    Any other wallet gets a 403 with the service's reasons, or a 503 while the service is unavailable, and is not
    charged.

    :param service: the trust service, such as ``https://trust.example``
    :param require: the tests that a wallet must have passed, in addition to being verified
    :param options: the options of x402's ``payment_middleware``
    :raises ValueError: if ``service`` is not an origin
    :raises InputError: for an unknown requirement
    """
    gate = Gate(service, require)

    async def before_verify(context: VerifyContext) -> AbortResult | None:
        return await asyncio.to_thread(gate.before_verify, context)

    server.on_before_verify(before_verify)
    server.on_after_verify(gate.after_verify)
    stock = stock_middleware(with_head(routes), server, **options)

    async def middleware(request: Request, call_next: _Next) -> Response:
        judgment = Judgment()
        token = CURRENT.set(judgment)

        async def judged(admitted: Request) -> Response:
            # x402 sets this for a payment that it accepts. A hook before the gate's can verify one without the gate.
            is_paid = getattr(admitted.state, "payment_payload", None) is not None
            return _answer(NOT_JUDGED) if is_paid and judgment.wallet is None else await call_next(admitted)

        try:
            response = await stock(request, judged)
        finally:
            CURRENT.reset(token)
        return response if judgment.refused is None else _answer(judgment.refused)

    return middleware


def _answer(refused: Refused) -> Response:
    return JSONResponse(refused.body, refused.status, refused.headers)
