"""Sell routes of FastAPI through the escrow.

::

    shop = APIRouter(route_class=escrowed(account=account, rpc_url=…, arbiter_url=…, price="0.10"))

    @shop.post("/haiku")
    def haiku(): ...
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from eth_account.signers.local import LocalAccount
from fastapi import Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from ..issuer import origin_of
from .arbiter import Arbiter
from .chain import Chain
from .delivery import Delivery
from .exchange import Handler, TooLarge, delivered, received, response_of
from .payment import (
    MalformedPayment,
    Payment,
    PaymentRefused,
    account_signature,
    digest_of,
    read_payment,
    unwrapped,
)
from .rules import is_coded, refund_reason
from .sale import Order, Refusal, Sales, Sold, Unsold
from .store import SHARED
from .terms import REFUNDABLE_AFTER_SECONDS, Offer, parse_price, requirements

logger = logging.getLogger("agent_payment_trust.escrow")

Validate = Callable[[Request], Awaitable[str | None] | str | None]
#: The longest value of a header, in characters: nginx reads all headers of an answer into 4 KB.
_LONGEST_HEADER = 3_200


def escrowed(
    *,
    account: LocalAccount,
    rpc_url: str,
    arbiter_url: str,
    price: str,
    validate: Validate | None = None,
    description: str = "",
    origin: str | None = None,
    least_seconds_left: int = 1200,
) -> type[APIRoute]:
    """The route class of escrowed routes: ``APIRouter(route_class=escrowed(…))``.

    An unpaid request is answered 402 with the terms; a paid one is held on the chain, then handled, and its response
    goes to the arbiter, who releases or refunds the money. A handler finds the payment's id in
    ``request.state.escrow_payment_id``.

    :param account: the merchant: it receives the payments, signs deliveries, and sends the holds
    :param rpc_url: JSON-RPC of the chain to sell on
    :param arbiter_url: the trust service, like ``https://trust.example``
    :param price: US dollars like ``"0.10"``
    :param validate: refuses a request by a text, before anything is held for it
    :param origin: the origin that buyers use, if it is not the request's own
    :param least_seconds_left: how many seconds of an earlier hold's 30 minutes must be left when the handler starts
    :raises ValueError: for an invalid price, origin, or ``least_seconds_left``
    """
    if origin is not None and origin_of(origin) != origin:
        raise ValueError(f'origin is {origin!r}; expected an origin like "https://shop.example", without a path.')
    if not 60 <= least_seconds_left <= REFUNDABLE_AFTER_SECONDS:
        raise ValueError(f"least_seconds_left is {least_seconds_left}, expected 60 to {REFUNDABLE_AFTER_SECONDS}.")
    shop = _Shop(account, rpc_url, arbiter_url.rstrip("/"), parse_price(price), description, origin, validate)
    shop.sales = Sales(shop.chain, shop.arbiter, SHARED, least_seconds_left)

    class EscrowedRoute(APIRoute):
        def get_route_handler(self) -> Handler:
            handler = super().get_route_handler()

            async def sold(request: Request) -> Response:
                return await shop.serve(request, handler)

            return sold

    return EscrowedRoute


@dataclass
class _Shop:
    account: LocalAccount
    rpc_url: str
    arbiter_url: str
    price: int
    description: str
    origin: str | None
    validate: Validate | None
    chain: Chain = field(init=False)
    arbiter: Arbiter = field(init=False)
    sales: Sales = field(init=False)
    _offers: list[Offer] | None = None
    #: Sales go on when a buyer hangs up.
    _running: set[asyncio.Task[Sold | Unsold | Refusal]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.chain = Chain(self.rpc_url, self.account)
        self.arbiter = Arbiter(self.arbiter_url, self.account, SHARED)

    async def serve(self, request: Request, handler: Handler) -> Response:
        try:
            offers = await self._known_offers()
        except Exception:
            logger.exception("The escrow could not be read.")
            return _unavailable("The escrow is temporarily unreachable. Send the same request again.")
        url = str(request.url)
        if self.origin is not None:
            url = re.sub(r"^\w+://[^/]+", self.origin, url)
        try:
            payment = read_payment(request.headers, offers, time.time())
            if payment is None:
                refusal = await self._refusal(request)
                return response_of(refusal) if refusal is not None else self._required(offers, url, "Payment required.")
            if request.method == "HEAD":
                raise MalformedPayment("A HEAD request has no response to pay for. Nothing was held.")
            if not payment.is_for(url):
                named = str(payment.resource)[:200]
                error = f"The payment is for {named}, which is another resource. Nothing was held."
                return JSONResponse({"error": f"{error} Do not sign again; send the same header there."}, 409)
            signature = await self._signature(payment)
            whole = await received(request)
        except MalformedPayment as error:
            return JSONResponse({"error": str(error)}, 400)
        except PaymentRefused as error:
            return self._required(offers, url, str(error))
        except TooLarge as error:
            return JSONResponse({"error": str(error)}, 413)
        except Exception:
            logger.exception("A payment could not be checked.")
            return _unavailable("The payment could not be checked. Do not sign again; send the same header again.")
        resource = f"{request.method} {request.url.path}{f'?{request.url.query}' if request.url.query else ''}"
        whole.state.escrow_payment_id = f"0x{payment.id.hex()}"
        order = Order(
            payment,
            signature,
            resource,
            validate=lambda: self._refusal(whole),
            run=lambda: delivered(whole, handler),
        )
        try:
            task = asyncio.create_task(self.sales.sell(order))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            outcome = await asyncio.shield(task)
        except Exception:
            logger.exception("A payment could not be completed.")
            return _unavailable("The payment could not be completed. Do not sign again; send the same header again.")
        return self._answer(outcome, offers, url)

    async def _known_offers(self) -> list[Offer]:
        """Read the contracts on the first request, and again after a failure."""
        if self._offers is None:
            escrows = await self.chain.read_escrows(self.arbiter_url)
            self._offers = [Offer(escrow, self.account.address, self.price) for escrow in escrows]
        return self._offers

    async def _refusal(self, request: Request) -> Delivery | None:
        if self.validate is None:
            return None
        said = self.validate(request)
        text = said if said is None or isinstance(said, str) else await said
        if text is None:
            return None
        return Delivery(422, (("content-type", "application/json"),), json.dumps({"error": text}).encode())

    async def _signature(self, payment: Payment) -> bytes:
        """The payer's signature as the hold takes it. Held terms are public: only it keeps others from the goods."""
        own = account_signature(payment)
        if own is not None:
            return own
        plain = unwrapped(payment.signature)
        if plain and await self.chain.accepts_signature(payment.info.payer, digest_of(payment), plain):
            return plain
        raise PaymentRefused(f"{payment.info.payer} did not sign these terms. A contract wallet must be deployed.")

    def _answer(self, outcome: Sold | Unsold | Refusal, offers: list[Offer], url: str) -> Response:
        if isinstance(outcome, Refusal):
            return response_of(outcome.delivery)
        if isinstance(outcome, Unsold):
            if outcome.kind == "payment_required":
                return self._required(offers, url, outcome.error)
            return (
                JSONResponse({"error": outcome.error}, 409)
                if outcome.kind == "conflict"
                else _unavailable(outcome.error)
            )
        response = self._withheld(outcome) if outcome.withheld else response_of(outcome.kept.delivery)
        payment, kept = outcome.payment, outcome.kept
        settled = {
            "success": True,
            "transaction": kept.transaction,
            "network": payment.offer.escrow.network,
            "payer": payment.info.payer,
            "amount": str(payment.offer.price),
        }
        response.headers.setdefault("cache-control", "no-store")
        response.headers["payment-response"] = _encoded(settled)
        response.headers["x-escrow-payment"] = f"0x{payment.id.hex()}"
        response.headers["x-escrow-decision"] = kept.decision
        if outcome.is_replay:
            response.headers["x-idempotent-replay"] = "true"
        return response

    def _withheld(self, outcome: Sold) -> Response:
        """The answer in place of a refunded response that looks like goods."""
        shown, delivery = f"0x{outcome.payment.id.hex()}", outcome.kept.delivery
        record = f"{self.arbiter_url}/escrow/evaluation/{shown}"
        why = None if is_coded(delivery) else refund_reason(delivery)
        error = (
            f"The arbiter refunds payment {shown} in full, so the merchant's response, with status {delivery.status}, "
            f"is withheld.{'' if why is None else f' {why}'} Its record is at {record}."
        )
        status = delivery.status
        body = {"error": error, "payment_id": shown, "decision": "refund", "withheld_status": status, "record": record}
        return JSONResponse(body, 500)

    def _required(self, offers: list[Offer], url: str, error: str) -> Response:
        """The 402: x402 version 2 terms in its header; its body has nothing that a version 1 client could sign."""
        accepts = [requirements(offer, time.time()) for offer in offers]
        for length in (1000, 100):
            header = _encoded(
                {
                    "x402Version": 2,
                    "error": error[:length],
                    "resource": {
                        "url": url if length == 1000 else url.split("?")[0],
                        "description": self.description[:length],
                        "mimeType": "application/json",
                    },
                    "accepts": accepts,
                    "extensions": {},
                }
            )
            if len(header) <= _LONGEST_HEADER:
                break
        schemes = " or ".join(f'"{one["scheme"]}"' for one in accepts)
        explained = f"{error} This sale goes through an escrow: x402 version 2, scheme {schemes}; see PAYMENT-REQUIRED."
        headers = {"payment-required": header, "cache-control": "no-store"}
        return JSONResponse({"x402Version": 1, "error": explained, "accepts": []}, 402, headers)


def _unavailable(error: str) -> Response:
    return JSONResponse({"error": error}, 503, {"retry-after": "5"})


def _encoded(value: object) -> str:
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode("ascii")
