"""Sell requests through the escrow, whatever framework the server uses."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from eth_account.signers.local import LocalAccount

from ..issuer import origin_of
from .arbiter import Arbiter
from .chain import Chain
from .contest import ContestTerms, parse_contest
from .delivery import Delivery, signed_for_buyer
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
from .sale import Order, Refusal, Sales, Sold, Unsold, least_seconds_left
from .store import SHARED
from .terms import Offer, parse_price, requirements

logger = logging.getLogger("agent_payment_trust.escrow")

#: The largest request that is sold, in bytes.
MAX_REQUEST_BYTES = 16 * 1024 * 1024
#: The longest value of a header, in characters: nginx reads all headers of an answer into 4 KB.
_LONGEST_HEADER = 3_200


class TooLarge(Exception):
    """The request is larger than what is sold."""

    def __init__(self) -> None:
        super().__init__(f"The request is larger than {MAX_REQUEST_BYTES} bytes. Nothing was held.")


class CheckFailed(Exception):
    """The merchant's own check of the input raised, which is its cause. The server answers it with a 500."""


@dataclass(frozen=True)
class Asked:
    """A request as a framework's adapter shows it."""

    method: str
    #: Absolute.
    url: str
    #: Whose names ignore case.
    headers: Mapping[str, str]
    #: Takes in all of a paid request before anything is held for it. Raises TooLarge, or anything if the buyer hung up.
    receive: Callable[[], Awaitable[None]]
    #: The merchant's check of the input: a text refuses it.
    validate: Callable[[], Awaitable[str | None]]
    #: The merchant's handler, which gets the payment's id. It answers instead of raising.
    run: Callable[[str], Awaitable[Delivery]]


@dataclass
class Seller:
    """Sells: an unpaid request is answered 402 with the terms; a paid one is held on the chain, then handled, and its
    response goes to the arbiter, who releases or refunds the money."""

    account: LocalAccount
    rpc_url: str
    arbiter_url: str
    price: int
    description: str
    origin: str | None
    contest: ContestTerms | None
    least_seconds_left: int
    _chain: Chain = field(init=False)
    _sales: Sales = field(init=False)
    _offers: list[Offer] | None = None
    #: Sales go on when a buyer hangs up.
    _running: set[asyncio.Task[Sold | Unsold | Refusal]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._chain = Chain(self.rpc_url, self.account)
        arbiter = Arbiter(self.arbiter_url, self.account, SHARED)
        self._sales = Sales(self._chain, arbiter, SHARED, self.least_seconds_left)

    async def serve(self, asked: Asked) -> Delivery:
        """Answer a request.

        :raises Exception: what the merchant's check of the input raised; nothing was held then
        """
        try:
            return await self._serve(asked)
        except CheckFailed as failed:
            raise failed.__cause__ or failed from None

    async def _serve(self, asked: Asked) -> Delivery:
        try:
            offers = await self._known_offers()
        except Exception:
            logger.exception("The escrow could not be read.")
            return _unavailable("The escrow is temporarily unreachable. Send the same request again.")
        url = asked.url if self.origin is None else re.sub(r"^\w+://[^/]+", self.origin, asked.url)
        try:
            payment = read_payment(asked.headers, offers, time.time())
            if payment is None:
                refusal = await _refusal(asked)
                return refusal if refusal is not None else self._required(offers, url, "Payment required.")
            if asked.method == "HEAD":
                raise MalformedPayment("A HEAD request has no response to pay for. Nothing was held.")
            if not payment.is_for(url):
                named = str(payment.resource)[:200]
                error = f"The payment is for {named}, which is another resource. Nothing was held."
                return _json(409, {"error": f"{error} Do not sign again; send the same header there."})
            signature = await self._signature(payment)
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
        parts = urlsplit(asked.url)
        resource = f"{asked.method} {parts.path}{f'?{parts.query}' if parts.query else ''}"
        shown = f"0x{payment.id.hex()}"
        order = Order(payment, signature, resource, validate=lambda: _refusal(asked), run=lambda: asked.run(shown))
        try:
            task = asyncio.create_task(self._sales.sell(order))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            outcome = await asyncio.shield(task)
        except CheckFailed:
            raise
        except Exception:
            logger.exception("A payment could not be completed.")
            return _unavailable("The payment could not be completed. Do not sign again; send the same header again.")
        return self._answer(outcome, offers, url)

    async def _known_offers(self) -> list[Offer]:
        """Read the contracts on the first request, and again after a failure."""
        if self._offers is None:
            escrows = await self._chain.read_escrows(self.arbiter_url)
            self._offers = [Offer(escrow, self.account.address, self.price, self.contest) for escrow in escrows]
        return self._offers

    async def _signature(self, payment: Payment) -> bytes:
        """The payer's signature as the hold takes it. Held terms are public: only it keeps others from the goods."""
        own = account_signature(payment)
        if own is not None:
            return own
        plain = unwrapped(payment.signature)
        if plain and await self._chain.accepts_signature(payment.info.payer, digest_of(payment), plain):
            return plain
        raise PaymentRefused(f"{payment.info.payer} did not sign these terms. A contract wallet must be deployed.")

    def _answer(self, outcome: Sold | Unsold | Refusal, offers: list[Offer], url: str) -> Delivery:
        if isinstance(outcome, Refusal):
            return outcome.delivery
        if isinstance(outcome, Unsold):
            if outcome.kind == "payment_required":
                return self._required(offers, url, outcome.error)
            return _json(409, {"error": outcome.error}) if outcome.kind == "conflict" else _unavailable(outcome.error)
        delivery = self._withheld(outcome) if outcome.withheld else outcome.kept.delivery
        payment, kept = outcome.payment, outcome.kept
        settled = {
            "success": True,
            "transaction": kept.transaction,
            "network": payment.offer.escrow.network,
            "payer": payment.info.payer,
            "amount": str(payment.offer.price),
        }
        headers = {
            "payment-response": _encoded(settled),
            "x-escrow-payment": f"0x{payment.id.hex()}",
            "x-escrow-decision": kept.decision,
            **({"x-idempotent-replay": "true"} if outcome.is_replay else {}),
            **({} if outcome.withheld else self._contest_headers(outcome)),
        }
        if not delivery.header("cache-control"):
            headers["cache-control"] = "no-store"
        others = tuple(one for one in delivery.headers if one[0] not in headers)
        return Delivery(delivery.status, (*others, *headers.items()), delivery.body)

    def _contest_headers(self, outcome: Sold) -> dict[str, str]:
        """What the arbiter released is signed for its buyer as well, who can so show what it got."""
        payment, kept = outcome.payment, outcome.kept
        if payment.offer.contest is None or kept.decision != "release":
            return {}
        return {
            "x-escrow-contest": f"{self.arbiter_url}/escrow/contest/0x{payment.id.hex()}",
            "x-escrow-delivery": signed_for_buyer(self.account, payment.offer, payment.id, kept.delivery),
        }

    def _withheld(self, outcome: Sold) -> Delivery:
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
        return _json(500, body)

    def _required(self, offers: list[Offer], url: str, error: str) -> Delivery:
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
        return _json(402, {"x402Version": 1, "error": explained, "accepts": []}, headers)


def create_seller(
    *,
    account: LocalAccount,
    rpc_url: str,
    arbiter_url: str,
    price: str,
    description: str,
    origin: str | None,
    least_left: int | None,
    contest_seconds: int,
    contest_conditions: Mapping[str, Mapping[str, Any]] | None,
) -> Seller:
    """A seller by the options of ``escrowed``.

    :raises ValueError: for an invalid price, origin, contest, or ``least_seconds_left``
    """
    if origin is not None and origin_of(origin) != origin:
        raise ValueError(f'origin is {origin!r}; expected an origin like "https://shop.example", without a path.')
    contest = parse_contest(contest_seconds, contest_conditions)
    left = least_seconds_left(least_left, contest)
    return Seller(account, rpc_url, arbiter_url.rstrip("/"), parse_price(price), description, origin, contest, left)


async def _refusal(asked: Asked) -> Delivery | None:
    try:
        text = await asked.validate()
    except Exception as error:
        raise CheckFailed from error
    return None if text is None else _json(422, {"error": text})


def _json(status: int, body: object, headers: Mapping[str, str] | None = None) -> Delivery:
    given = (("content-type", "application/json"), *(headers or {}).items())
    return Delivery(status, given, json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())


def _unavailable(error: str) -> Delivery:
    return _json(503, {"error": error}, {"retry-after": "5"})


def _encoded(value: object) -> str:
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode("ascii")
