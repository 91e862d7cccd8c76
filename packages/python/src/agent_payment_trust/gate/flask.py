"""The gate for Flask."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any

from flask import Flask, g
from x402.http.middleware.flask import payment_middleware as stock_middleware
from x402.http.types import RoutesConfig
from x402.server import x402ResourceServerSync

from .judge import CURRENT, NOT_JUDGED, Gate, Judgment, Refused, with_head

_StartResponse = Callable[..., Any]
_Environ = dict[str, Any]


def payment_middleware(
    app: Flask,
    routes: RoutesConfig,
    server: x402ResourceServerSync,
    *,
    service: str,
    require: str | Sequence[str] = "verified",
    **options: Any,  # noqa: ANN401
) -> None:
    """Install x402's middleware, for verified wallets only: ``payment_middleware(app, routes, server, service=…)``.

    It works like ``agent_payment_trust.gate.fastapi.payment_middleware``, with the same options.

    :raises ValueError: if ``service`` is not an origin
    :raises InputError: for an unknown requirement
    """
    gate = Gate(service, require)
    server.on_before_verify(gate.before_verify)
    server.on_after_verify(gate.after_verify)
    handle = app.wsgi_app

    def judged(environ: _Environ, start_response: _StartResponse) -> Iterable[bytes]:
        judgment = CURRENT.get()
        # x402 sets this for a payment that it accepts. A hook before the gate's can verify one without the gate.
        if g.get("payment_payload") is not None and (judgment is None or judgment.wallet is None):
            return _answer(NOT_JUDGED, start_response)
        return handle(environ, start_response)

    app.wsgi_app = judged  # type: ignore[method-assign]
    stock_middleware(app, with_head(routes), server, **options)
    paid = app.wsgi_app

    def gated(environ: _Environ, start_response: _StartResponse) -> Iterable[bytes]:
        judgment = Judgment()

        def start_unless_refused(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            return start_response(*args, **kwargs) if judgment.refused is None else lambda _: None

        token = CURRENT.set(judgment)
        try:
            body = paid(environ, start_unless_refused)
        finally:
            CURRENT.reset(token)
        return body if judgment.refused is None else _answer(judgment.refused, start_response)

    app.wsgi_app = gated  # type: ignore[method-assign]


def _answer(refused: Refused, start_response: _StartResponse) -> Iterable[bytes]:
    start_response(f"{refused.status} {HTTPStatus(refused.status).phrase}", list(refused.headers.items()))
    return [json.dumps(refused.body).encode()]
