"""One sale for an ordinary payment: run the handler, charge for its response, and return it."""

from __future__ import annotations

import time

from .chain import Chain
from .delivery import Delivery
from .exact import ExactPayment
from .purchase import Order, Sold, Unsold, bought_other, claim_delivery, leased, lock_of
from .store import DeliveryStore, KeptDelivery


class ExactSales:
    """Sells for ordinary payments. The same payment again gets the same response."""

    def __init__(self, chain: Chain, store: DeliveryStore) -> None:
        self._chain = chain
        self._store = store

    async def sell(self, order: Order[ExactPayment]) -> Sold | Unsold | Delivery:
        """Sell one request, or return the merchant's refusal or failure, for which nothing is charged.

        :raises Exception: if it is unknown whether the payment has settled; the same request may be sent again
        """
        async with lock_of(order.payment.id):
            kept = await self._store.get(order.payment.id)
            return await self._sell_once(order) if kept is None else _replay(order, kept)

    async def _sell_once(self, order: Order[ExactPayment]) -> Sold | Unsold | Delivery:
        payment = order.payment
        refusal = await order.validate()
        if refusal is not None:
            return refusal
        paid = await self._chain.paid_by(payment)
        if paid == "elsewhere":
            return Unsold("conflict", "This payment was used before, and its response is no longer stored.")
        if paid is None:
            refused = payment.too_late(time.time()) or await self._chain.refused_by_usdc(payment)
            if refused is not None:
                return Unsold("payment_required", f"The payment cannot be made: {refused}")
        claim = await claim_delivery(self._store, payment.id, order.resource)
        if isinstance(claim, Unsold):
            return claim
        if isinstance(claim, KeptDelivery):
            return _replay(order, claim)
        async with leased(self._store, payment.id, claim):
            return await self._serve(order, claim, paid)

    async def _serve(self, order: Order[ExactPayment], lease: str, paid: str | None) -> Sold | Unsold | Delivery:
        """Run the handler, charge for its response unless it is paid, and store it."""
        payment = order.payment
        delivery = await order.run()
        if paid is None and delivery.status >= 400:
            await self._store.extend(payment.id, lease, 0)
            return delivery.passed_on({})
        # A transfer may also revert because someone else has submitted the same authorization.
        transaction = paid or await self._chain.settle(payment) or await self._chain.paid_by(payment)
        if transaction is None or transaction == "elsewhere":
            await self._store.extend(payment.id, lease, 0)
            return Unsold("payment_required", "The payment cannot be made: USDC refused it when it was sent.")
        kept = await self._store.keep(payment.id, KeptDelivery(delivery, order.resource, transaction, "release"))
        return Sold(payment, kept, is_replay=False)


def _replay(order: Order[ExactPayment], kept: KeptDelivery) -> Sold | Unsold:
    if kept.resource != order.resource:
        return bought_other(order.payment.id, kept.resource)
    return Sold(order.payment, kept, is_replay=True)
