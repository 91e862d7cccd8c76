"""One sale: hold the payment, run the handler once, have the arbiter decide, and return the response."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timezone

from .arbiter import Arbiter
from .chain import Chain, Held, NotHeld
from .contest import CONTEST_ROOM_SECONDS, ContestTerms
from .delivery import Delivery
from .payment import Payment
from .purchase import Order, Sold, Unsold, bought_other, claim_delivery, leased, lock_of, not_yet
from .rules import is_coded, refund_reason
from .store import DeliveryStore, KeptDelivery
from .terms import REFUNDABLE_AFTER_SECONDS

#: The time for a decided release to be mined. With less, the buyer could get both the goods and the refund.
_LEAST_SECONDS_TO_RELEASE = 60
#: The time for the arbiter to decide as well.
_LEAST_SECONDS_TO_DECIDE = 300
#: The number of times to read a hold that a lagging node does not show.
_LOOKS = 5


def parse_seconds_left(given: int | None, contest: ContestTerms | None) -> int:
    """Parse the option ``least_seconds_left``; its default is 20 minutes, or the window plus 5 minutes if that is more.

    :raises ValueError: if it is less than a release needs in addition to the window, or more than 30 minutes
    """
    window = 0 if contest is None else contest.seconds
    if given is None:
        return max(1200, window + _LEAST_SECONDS_TO_DECIDE)
    least = _LEAST_SECONDS_TO_RELEASE + (0 if contest is None else window + CONTEST_ROOM_SECONDS)
    if least <= given <= REFUNDABLE_AFTER_SECONDS:
        return given
    raise ValueError(f"least_seconds_left is {given}, expected {least} to {REFUNDABLE_AFTER_SECONDS}.")


class Sales:
    """Sells requests. The same payment again, concurrently or later, gets the same response."""

    def __init__(self, chain: Chain, arbiter: Arbiter, store: DeliveryStore, least_seconds_left: int) -> None:
        self._chain = chain
        self._arbiter = arbiter
        self._store = store
        self._least_seconds_left = least_seconds_left

    async def sell(self, order: Order[Payment]) -> Sold | Unsold | Delivery:
        """Sell one request, or return the merchant's refusal of the input.

        :raises Exception: if it is unknown whether the payment is held; the same request may be sent again
        """
        async with lock_of(order.payment.id):
            kept = await self._store.get(order.payment.id)
            return await (self._sell_once(order) if kept is None else self._replay(order, kept))

    async def _sell_once(self, order: Order[Payment]) -> Sold | Unsold | Delivery:
        payment, shown = order.payment, f"0x{order.payment.id.hex()}"
        refusal = await order.validate()
        if refusal is not None:
            state = await self._chain.state(payment)
            if state.status == "none":
                return refusal
        held = await self._chain.hold(payment)
        if isinstance(held, NotHeld):
            return await self._unless_sold(order, _unsold(held, shown))
        if not held.is_own:
            left = held.refundable_from - await self._chain.latest_time()
            if left < self._least_seconds_left:
                return await self._unless_sold(order, _too_late(held, shown))
        return await self._deliver(order, refusal, held.transaction)

    async def _unless_sold(self, order: Order[Payment], unsold: Unsold) -> Sold | Unsold:
        """Check for a sale by another process since the first look. Its response is stored before the release."""
        kept = await self._store.get(order.payment.id)
        return unsold if kept is None else await self._replay(order, kept)

    async def _deliver(self, order: Order[Payment], refusal: Delivery | None, transaction: str) -> Sold | Unsold:
        """Make the delivery of a held payment, unless another process did or is doing so."""
        payment = order.payment
        claim = await claim_delivery(self._store, payment.id, order.resource)
        if isinstance(claim, Unsold):
            return claim
        if isinstance(claim, KeptDelivery):
            return await self._replay(order, claim)
        async with leased(self._store, payment.id, claim):
            # If it is already held, the refusal is the delivery, and the arbiter refunds it immediately.
            delivery = await order.run() if refusal is None else refusal
        kept = await self._store.keep(payment.id, KeptDelivery(delivery, order.resource, transaction))
        return await self._hand_over(order, kept, is_replay=False)

    async def _replay(self, order: Order[Payment], kept: KeptDelivery) -> Sold | Unsold:
        if kept.resource != order.resource:
            return bought_other(order.payment.id, kept.resource)
        return await self._hand_over(order, kept, is_replay=True)

    async def _hand_over(self, order: Order[Payment], kept: KeptDelivery, *, is_replay: bool) -> Sold | Unsold:
        """Return a response once the arbiter has it, and only if the merchant gets the money for it."""
        payment, delivery, shown = order.payment, kept.delivery, f"0x{order.payment.id.hex()}"
        decision = kept.decision if kept.decision != "pending" else await self._arbiter.decide(payment, delivery)
        if decision == "ended":
            return _over(shown)
        if decision == "refused":
            return not_yet(f"The arbiter refuses to decide payment {shown} now, so its response is withheld.")
        sold = Sold(payment, replace(kept, decision=decision), is_replay)
        if decision == "refund":
            return sold
        # Buyers can shape a handler's response: an `error` among the goods would get them the goods and the refund.
        is_error = delivery.status >= 400
        if decision == "pending" and not is_error and (is_coded(delivery) or refund_reason(delivery) is not None):
            return not_yet(f"The arbiter has not decided payment {shown} yet, and may refund it for its response.")
        return await self._unless_ended(order, sold)

    async def _unless_ended(self, order: Order[Payment], sold: Sold) -> Sold | Unsold:
        """Read the hold right before its response leaves, because the handler may have taken long."""
        payment, shown = order.payment, f"0x{order.payment.id.hex()}"
        state = await self._chain.state(payment)
        for look in range(_LOOKS):
            if state.status != "none":
                break
            # This node lags behind the one that showed the hold.
            await asyncio.sleep(0.1 * 2**look)
            state = await self._chain.state(payment)
        if state.status == "none":
            # A reorganization removed the hold; the same authorization creates it again.
            await self._chain.hold(payment)
            state = await self._chain.state(payment)
        if state.status == "released":
            return sold
        if state.status == "refunded":
            return _over(shown)
        if state.status == "none":
            return not_yet(f"The hold of payment {shown} is no longer on the chain.")
        is_pending = sold.kept.decision == "pending"
        contest = payment.offer.contest
        to_decide = _LEAST_SECONDS_TO_DECIDE + (0 if contest is None else contest.seconds + CONTEST_ROOM_SECONDS)
        least = to_decide if is_pending else _LEAST_SECONDS_TO_RELEASE
        if state.refundable_from - await self._chain.latest_time() >= least:
            return sold
        return not_yet(f"Payment {shown} is almost refundable, and its release is not on the chain yet.")


def _unsold(outcome: NotHeld, shown: str) -> Unsold:
    if outcome.status == "released":
        return Unsold("conflict", f"Payment {shown} was released, and its response is no longer stored.")
    if outcome.status == "refunded":
        return Unsold("payment_required", f"Payment {shown} was refunded to its payer; sign a new one.")
    return Unsold("payment_required", f"The payment cannot be held: {outcome.why}.")


def _too_late(held: Held, shown: str) -> Unsold:
    at = datetime.fromtimestamp(held.refundable_from, timezone.utc).isoformat()
    return Unsold(
        "payment_required",
        f"Payment {shown} was held earlier, and too little time is left to deliver: anyone can refund it from {at}. "
        "Sign a new one.",
    )


def _over(shown: str) -> Unsold:
    return Unsold(
        "payment_required",
        f"The hold of payment {shown} ended before the response was ready; the payer gets the money back. "
        "Sign a new one.",
    )
