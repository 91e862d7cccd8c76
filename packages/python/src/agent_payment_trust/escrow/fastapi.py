"""Sell routes of FastAPI through the escrow.

::

    shop = APIRouter(route_class=escrowed(account=account, rpc_url=…, arbiter_url=…, price="0.10"))

    @shop.post("/haiku")
    def haiku(): ...
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from eth_account.signers.local import LocalAccount
from fastapi import Request, Response
from fastapi.routing import APIRoute

from .exchange import Handler, delivered, received, response_of
from .seller import Asked, create_seller
from .store import DeliveryStore

Validate = Callable[[Request], Awaitable[str | None] | str | None]


def escrowed(
    *,
    account: LocalAccount | Callable[[], LocalAccount],
    rpc_url: str | Callable[[], str],
    arbiter_url: str,
    price: str,
    validate: Validate | None = None,
    description: str = "",
    origin: str | None = None,
    least_seconds_left: int | None = None,
    contest_seconds: int = 0,
    contest_conditions: Mapping[str, Mapping[str, Any]] | None = None,
    exact: bool = False,
    store: DeliveryStore | None = None,
) -> type[APIRoute]:
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
    seller = create_seller(
        account=account,
        rpc_url=rpc_url,
        arbiter_url=arbiter_url,
        price=price,
        description=description,
        origin=origin,
        least_left=least_seconds_left,
        contest_seconds=contest_seconds,
        contest_conditions=contest_conditions,
        exact=exact,
        store=store,
    ).start()

    async def serve(request: Request, handler: Handler) -> Response:
        whole = request

        async def receive() -> None:
            nonlocal whole
            whole = await received(request)

        async def check() -> str | None:
            refusal = None if validate is None else validate(whole)
            return refusal if refusal is None or isinstance(refusal, str) else await refusal

        def run(payment_id: str) -> Any:  # noqa: ANN401
            whole.state.escrow_payment_id = payment_id
            return delivered(whole, handler)

        url = str(request.url)
        return response_of(await seller.serve(Asked(request.method, url, request.headers, receive, check, run)))

    class EscrowedRoute(APIRoute):
        def get_route_handler(self) -> Handler:
            handler = super().get_route_handler()

            async def sold(request: Request) -> Response:
                return await serve(request, handler)

            return sold

    return EscrowedRoute
