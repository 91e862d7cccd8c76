"""Selling requests through the escrow, independent of the server's framework."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypedDict
from urllib.parse import urlsplit

from eth_account.signers.local import LocalAccount

from ..issuer import origin_of
from .arbiter import Arbiter
from .chain import Chain, short_of_gas
from .contest import parse_contest
from .delivery import Delivery, encoded, signed_for_buyer
from .exact import EXACT, ExactPayment, exact_requirements, read_exact
from .exact_sale import ExactSales
from .payment import (
    Header,
    MalformedPayment,
    Payment,
    PaymentRefused,
    account_signature,
    decode_header,
    digest_of,
    read_payment,
    unwrapped,
)
from .purchase import Order, Sold, Unsold
from .rules import is_coded, refund_reason
from .sale import Sales, parse_seconds_left
from .store import SHARED, DeliveryStore, KeptDelivery
from .terms import Offer, parse_price, requirements

logger = logging.getLogger("agent_payment_trust.escrow")

_Outcome: TypeAlias = "Sold | Unsold | Delivery"

#: The largest request body, in bytes.
MAX_REQUEST_BYTES = 16 * 1024 * 1024
#: The longest value of a header, in characters: nginx reads all headers of a response into 4 KB.
_LONGEST_HEADER = 3_200


class TooLarge(Exception):
    """The request is larger than the limit."""

    def __init__(self) -> None:
        super().__init__(f"The request is larger than {MAX_REQUEST_BYTES} bytes. Nothing was held.")


class CheckFailed(Exception):
    """The merchant's own check of the input raised its cause. The server returns a 500."""


@dataclass(frozen=True)
class Asked:
    """A request from a framework's adapter."""

    method: str
    #: Absolute.
    url: str
    #: Names are case-insensitive.
    headers: Mapping[str, str]
    #: Reads all of a paid request before anything is held for it. Raises TooLarge, or anything if the buyer hung up.
    receive: Callable[[], Awaitable[None]]
    #: The merchant's check of the input, which refuses it with a text.
    validate: Callable[[], Awaitable[str | None]]
    #: The merchant's handler, which gets the payment's id. It returns a response instead of raising.
    run: Callable[[str], Awaitable[Delivery]]


@dataclass(frozen=True)
class _Opened:
    """Everything that needs the merchant's key and node."""

    account: LocalAccount
    rpc_url: str
    chain: Chain
    sales: Sales
    exact: ExactSales


class _Required(TypedDict):
    account: LocalAccount | Callable[[], LocalAccount]
    rpc_url: str | Callable[[], str]
    arbiter_url: str
    price: str


class Options(_Required, total=False):
    """The options of ``escrowed``, which documents them."""

    description: str
    origin: str | None
    least_seconds_left: int | None
    contest_seconds: int
    contest_conditions: Mapping[str, Mapping[str, Any]] | None
    exact: bool
    store: DeliveryStore | None


class Seller:
    """Sells requests through the escrow.

    An unpaid request gets a 402 with the terms. A paid one is held on the chain, then handled, and its response goes to
    the arbiter, which releases or refunds the money.
    """

    def __init__(
        self,
        *,
        account: LocalAccount | Callable[[], LocalAccount],
        rpc_url: str | Callable[[], str],
        arbiter_url: str,
        price: str,
        description: str = "",
        origin: str | None = None,
        least_seconds_left: int | None = None,
        contest_seconds: int = 0,
        contest_conditions: Mapping[str, Mapping[str, Any]] | None = None,
        exact: bool = False,
        store: DeliveryStore | None = None,
    ) -> None:
        """
        :raises ValueError: for an invalid price, origin, node, contest, or ``least_seconds_left``
        """
        if origin is not None and origin_of(origin) != origin:
            raise ValueError(f'origin is {origin!r}; expected an origin like "https://shop.example", without a path.')
        self.account = account
        self.rpc_url = rpc_url
        self.arbiter_url = arbiter_url.rstrip("/")
        self.contest = parse_contest(contest_seconds, contest_conditions)
        self.price = parse_price(price)
        self.description = description
        self.origin = origin
        self.least_seconds_left = parse_seconds_left(least_seconds_left, self.contest)
        self.takes_exact = exact
        self.store = SHARED if store is None else store
        self._opened: _Opened | None = None
        self._offers: list[Offer] | None = None
        #: Sales continue when a buyer hangs up.
        self._running: set[asyncio.Task[_Outcome]] = set()

    def start(self) -> Seller:
        """Report now any fault that would prevent every sale, unless the first request reads the key or the node."""
        if not callable(self.account) and not callable(self.rpc_url):
            _tell_without_gas(self.open())
        return self

    def open(self) -> _Opened:
        """Read the key and the node, once.

        :raises Exception: if one is missing
        """
        if self._opened is None:
            account = self.account() if callable(self.account) else self.account
            rpc_url = self.rpc_url() if callable(self.rpc_url) else self.rpc_url
            if not isinstance(rpc_url, str) or not rpc_url.startswith("http"):
                raise ValueError(f"rpc_url is {rpc_url!r}; expected the http or https URL of a node.")
            chain = Chain(rpc_url, account)
            arbiter = Arbiter(self.arbiter_url, account, self.store)
            sales = Sales(chain, arbiter, self.store, self.least_seconds_left)
            self._opened = _Opened(account, rpc_url, chain, sales, ExactSales(chain, self.store))
        return self._opened

    async def serve(self, asked: Asked) -> Delivery:
        """Answer a request.

        :raises Exception: from the merchant's check of the input, or for a missing key or node; nothing was held then
        """
        if self._opened is None:
            _tell_without_gas(self.open())
        try:
            return await self._serve(asked)
        except CheckFailed as failed:
            raise failed.__cause__ or failed from None

    async def _serve(self, asked: Asked) -> Delivery:
        opened = self.open()
        try:
            offers = await self._known_offers(opened)
        except Exception:
            logger.exception("The escrow could not be read.")
            return _unavailable("The escrow is temporarily unreachable. Send the same request again.")
        url = asked.url if self.origin is None else re.sub(r"^\w+://[^/]+", self.origin, asked.url)
        try:
            header = decode_header(asked.headers)
            if header is None:
                refusal = await _refusal(asked)
                return refusal if refusal is not None else self._required(offers, url, "Payment required.")
            if asked.method == "HEAD":
                raise MalformedPayment("A HEAD request has no response to pay for. Nothing was held.")
            sale = await self._sale(opened, asked, header, offers)
            if not header.is_for(url):
                named = str(header.resource)[:200]
                error = f"The payment is for {named}, which is a different resource. Nothing was held."
                return _json(409, {"error": f"{error} Do not sign again; send the same header there."})
            await asked.receive()
        except CheckFailed:
            raise
        except MalformedPayment as error:
            return _json(400, {"error": str(error)})
        except PaymentRefused as error:
            return self._required(offers, url, str(error))
        except TooLarge as error:
            return _json(413, {"error": str(error)})
        except Exception:
            logger.exception("A payment could not be checked.")
            return _unavailable("The payment could not be checked. Do not sign again; send the same header again.")
        try:
            task = asyncio.create_task(sale())
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            outcome = await asyncio.shield(task)
        except CheckFailed:
            raise
        except Exception:
            logger.exception("A payment could not be completed.")
            return _unavailable("The payment could not be completed. Do not sign again; send the same header again.")
        return self._answer(opened, outcome, offers, url)

    async def _sale(
        self, opened: _Opened, asked: Asked, header: Header, offers: list[Offer]
    ) -> Callable[[], Coroutine[Any, Any, _Outcome]]:
        """Return how to sell the resource of a payment.

        :raises MalformedPayment: if the payment cannot be read
        :raises PaymentRefused: if it does not match an offer, or its payer did not sign it
        """
        parts = urlsplit(asked.url)
        resource = f"{asked.method} {parts.path}{f'?{parts.query}' if parts.query else ''}"

        async def validate() -> Delivery | None:
            return await _refusal(asked)

        if self.takes_exact and header.accepted.get("scheme") == EXACT:
            exact = read_exact(header, offers[0], time.time())
            bought = Order(exact, resource, validate, run=lambda: asked.run(f"0x{exact.id.hex()}"))
            return lambda: opened.exact.sell(bought)
        read = read_payment(header, offers, time.time())
        payment = replace(read, signature=await self._signature(opened.chain, read))
        order = Order(payment, resource, validate, run=lambda: asked.run(f"0x{payment.id.hex()}"))
        return lambda: opened.sales.sell(order)

    async def _known_offers(self, opened: _Opened) -> list[Offer]:
        """Read the contracts on the first request, and again after a failure."""
        if self._offers is None:
            escrows = await opened.chain.read_escrows(self.arbiter_url)
            self._offers = [Offer(escrow, opened.account.address, self.price, self.contest) for escrow in escrows]
        return self._offers

    async def _signature(self, chain: Chain, payment: Payment) -> bytes:
        """Return the payer's signature in the form that the hold needs.

        The terms of a hold are public; only the signature keeps others from the goods.
        """
        own = account_signature(payment)
        if own is not None:
            return own
        plain = unwrapped(payment.signature)
        if plain and await chain.accepts_signature(payment.info.payer, digest_of(payment), plain):
            return plain
        raise PaymentRefused(f"{payment.info.payer} did not sign these terms. A contract wallet must be deployed.")

    def _answer(self, opened: _Opened, outcome: _Outcome, offers: list[Offer], url: str) -> Delivery:
        if isinstance(outcome, Delivery):
            return outcome
        if isinstance(outcome, Unsold):
            if outcome.kind == "payment_required":
                return self._required(offers, url, outcome.error)
            return _json(409, {"error": outcome.error}) if outcome.kind == "conflict" else _unavailable(outcome.error)
        payment, kept = outcome.payment, outcome.kept
        replayed = {"x-idempotent-replay": "true"} if outcome.is_replay else {}
        headers = {"payment-response": _settled(payment, kept), **replayed}
        if isinstance(payment, ExactPayment):
            return kept.delivery.passed_on(headers)
        shown = f"0x{payment.id.hex()}"
        headers |= {"x-escrow-payment": shown, "x-escrow-decision": kept.decision}
        if outcome.is_withheld:
            return self._withheld(shown, kept.delivery).passed_on(headers)
        if payment.offer.contest is not None and kept.decision == "release":
            # The delivery, signed for its buyer too, is proof of what it received.
            signed = signed_for_buyer(opened.account, payment.offer, payment.id, kept.delivery)
            contest = f"{self.arbiter_url}/escrow/contest/{shown}"
            headers |= {"x-escrow-contest": contest, "x-escrow-delivery": signed}
        return kept.delivery.passed_on(headers)

    def _withheld(self, shown: str, delivery: Delivery) -> Delivery:
        """Return the response that replaces a refunded one that looks like goods."""
        record = f"{self.arbiter_url}/escrow/evaluation/{shown}"
        why = None if is_coded(delivery) else refund_reason(delivery)
        error = (
            f"The arbiter refunds payment {shown} in full, so the merchant's response, with status {delivery.status}, "
            f"is withheld.{'' if why is None else f' {why}'} Its record is at {record}."
        )
        status = delivery.status
        body = {"error": error, "payment_id": shown, "decision": "refund", "withheld_status": status, "record": record}
        return _json(500, body)

    def _required(self, offers: list[Offer], url: str, error: str) -> Delivery:
        """Return the 402, with x402 version 2 terms in its header.

        Its body contains nothing that a version 1 client could sign.
        """
        accepts = [requirements(offer, time.time()) for offer in offers]
        through = "through an escrow"
        if self.takes_exact:
            accepts.append(exact_requirements(offers[0]))
            through = f'through an escrow, or without its protection by "{EXACT}"'
        for length in (1000, 100):
            header = encoded(
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
        explained = f"{error} This sale goes {through}: x402 version 2, scheme {schemes}; see PAYMENT-REQUIRED."
        headers = {"payment-required": header, "cache-control": "no-store"}
        return _json(402, {"x402Version": 1, "error": explained, "accepts": []}, headers)


def _tell_without_gas(opened: _Opened) -> None:
    """Log one line if the account that sends the holds cannot pay for one, without waiting for the node."""

    def look() -> None:
        # The first sale reports the node's failure.
        with contextlib.suppress(Exception):
            short = short_of_gas(opened.rpc_url, opened.account.address)
            if short is not None:
                logger.warning("%s", short)

    threading.Thread(target=look, name="escrow gas", daemon=True).start()


async def _refusal(asked: Asked) -> Delivery | None:
    try:
        text = await asked.validate()
    except Exception as error:
        raise CheckFailed from error
    return None if text is None else _json(422, {"error": text})


def _json(status: int, body: object, headers: Mapping[str, str] | None = None) -> Delivery:
    given = (("content-type", "application/json"), *(headers or {}).items())
    return Delivery(status, given, json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())


def _settled(payment: Payment | ExactPayment, kept: KeptDelivery) -> str:
    offer = payment.offer
    settled = {
        "success": True,
        "transaction": kept.transaction,
        "network": offer.escrow.network,
        "payer": payment.payer,
        "amount": str(offer.price),
    }
    return encoded(settled)


def _unavailable(error: str) -> Delivery:
    return _json(503, {"error": error}, {"retry-after": "5"})
