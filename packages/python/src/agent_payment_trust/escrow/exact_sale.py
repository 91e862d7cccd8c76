"""One sale for an ordinary payment: run the handler, charge for its response, and return it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .chain import Chain
from .delivery import Delivery
from .exact import ExactPayment
from .only_once import claim_delivery, leased
from .sale import Refusal, Unsold, being_made, bought_other, lock_of
from .store import DeliveryStore, KeptDelivery


@dataclass(frozen=True)
class SoldExactly:
    """A response and the transfer that paid for it."""

    payment: ExactPayment
    kept: KeptDelivery
    is_replay: bool


@dataclass(frozen=True)
class Uncharged:
    """The handler returned a failure, and nothing was charged."""

    delivery: Delivery


@dataclass(frozen=True)
class ExactOrder:
    """An ordinary payment, and its purchase."""

    payment: ExactPayment
    #: Method and path with its query.
    resource: str
    #: The merchant's refusal of the input, or None.
    validate: Callable[[], Awaitable[Delivery | None]]
    #: The merchant's handler. It returns a response instead of raising.
    run: Callable[[], Awaitable[Delivery]]


class ExactSales:
    """Sells for ordinary payments. The same payment again gets the same response."""

    def __init__(self, chain: Chain, store: DeliveryStore) -> None:
        self._chain = chain
        self._store = store

    async def sell(self, order: ExactOrder) -> SoldExactly | Uncharged | Unsold | Refusal:
        """Sell one request.

        :raises Exception: if it is unknown whether the payment has settled; the same request may be sent again
        """
        async with lock_of(order.payment.id):
            kept = await self._store.get(order.payment.id)
            return await self._sell_once(order) if kept is None else _replay(order, kept)

    async def _sell_once(self, order: ExactOrder) -> SoldExactly | Uncharged | Unsold | Refusal:
        payment = order.payment
        refusal = await order.validate()
        if refusal is not None:
            return Refusal(refusal)
        paid = await self._chain.paid_by(payment)
        if paid == "elsewhere":
            return Unsold("conflict", "This payment was used before, and its response is no longer stored.")
        if paid is None:
            refused = payment.too_late(time.time()) or await self._chain.refused_by_usdc(payment)
            if refused is not None:
                return Unsold("payment_required", f"The payment cannot be made: {refused}")
        claim = await claim_delivery(self._store, payment.id, order.resource)
        if isinstance(claim, KeptDelivery):
            return _replay(order, claim)
        if claim.resource != order.resource:
            return bought_other(payment.id, claim.resource)
        if claim.lease is None:
            return being_made(payment.id)
        async with leased(self._store, payment.id, claim.lease):
            return await self._serve(order, claim.lease, paid)

    async def _serve(self, order: ExactOrder, lease: str, paid: str | None) -> SoldExactly | Uncharged | Unsold:
        """Run the handler, charge for its response unless it is paid, and store it."""
        payment = order.payment
        delivery = await order.run()
        if paid is None and delivery.status >= 400:
            await self._store.extend(payment.id, lease, 0)
            return Uncharged(delivery)
        # A transfer may also revert because someone else has submitted the same authorization.
        transaction = paid or await self._chain.settle(payment) or await self._chain.paid_by(payment)
        if transaction is None or transaction == "elsewhere":
            await self._store.extend(payment.id, lease, 0)
            return Unsold("payment_required", "The payment cannot be made: USDC refused it when it was sent.")
        kept = await self._store.keep(payment.id, KeptDelivery(delivery, order.resource, transaction, "release"))
        return SoldExactly(payment, kept, is_replay=False)


def _replay(order: ExactOrder, kept: KeptDelivery) -> SoldExactly | Unsold:
    if kept.resource != order.resource:
        return bought_other(order.payment.id, kept.resource)
    return SoldExactly(order.payment, kept, is_replay=True)
