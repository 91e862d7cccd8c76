"""Purchases: one delivery per payment, regardless of the number of processes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar
from weakref import WeakValueDictionary

from .delivery import Delivery
from .exact import ExactPayment
from .payment import Payment
from .store import DeliveryStore, KeptDelivery

logger = logging.getLogger("agent_payment_trust.escrow")

#: The time for which a dead process keeps others from making its delivery, in seconds.
_LEASE_SECONDS = 60.0
#: The time that a request waits for a delivery that another one is making, in seconds.
_WAIT_SECONDS = 25.0
_LONGEST_PAUSE_SECONDS = 2.0

_Paid = TypeVar("_Paid", Payment, ExactPayment)


@dataclass(frozen=True)
class Order(Generic[_Paid]):
    """A signed payment, and its purchase."""

    payment: _Paid
    #: Method and path with its query.
    resource: str
    #: The merchant's refusal of the input, or None.
    validate: Callable[[], Awaitable[Delivery | None]]
    #: The merchant's handler. It returns a response instead of raising.
    run: Callable[[], Awaitable[Delivery]]


@dataclass(frozen=True)
class Sold:
    """A response, and the payment for it."""

    payment: Payment | ExactPayment
    kept: KeptDelivery
    is_replay: bool

    @property
    def is_withheld(self) -> bool:
        """Return whether the arbiter refunds a response that looks like goods, so that the buyer does not get it."""
        return self.kept.decision == "refund" and self.kept.delivery.status < 400


@dataclass(frozen=True)
class Unsold:
    """The reason why there is no response.

    ``payment_required``: the buyer has to sign another payment. ``conflict``: the payment bought something else.
    ``not_yet``: the same header completes the sale later.
    """

    kind: Literal["payment_required", "conflict", "not_yet"]
    error: str


def bought_other(payment_id: bytes, resource: str) -> Unsold:
    return Unsold("conflict", f"Payment 0x{payment_id.hex()} already bought {resource}.")


def not_yet(why: str) -> Unsold:
    return Unsold("not_yet", f"{why} Do not sign again; send the same header again.")


_locks: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()


def lock_of(payment_id: bytes) -> asyncio.Lock:
    """Return a lock by which one request at a time sells for a payment, at all routes of the process."""
    return _locks.setdefault(payment_id, asyncio.Lock())


async def claim_delivery(store: DeliveryStore, payment_id: bytes, resource: str) -> KeptDelivery | Unsold | str:
    """Wait until a delivery exists or is the caller's to make, at most 25 seconds.

    Return the delivery, the caller's lease, or the reason why the delivery is not the caller's to make.
    """
    until, pause = time.monotonic() + _WAIT_SECONDS, 0.1
    while True:
        claim = await store.claim(payment_id, resource, _LEASE_SECONDS)
        if claim.resource != resource:
            return bought_other(payment_id, claim.resource)
        # The previous lease holder may have stored it just now.
        kept = await store.get(payment_id)
        if kept is not None:
            return kept
        if claim.lease is not None:
            return claim.lease
        if time.monotonic() + pause > until:
            return not_yet(f"The response for payment 0x{payment_id.hex()} is still being made.")
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)


@contextlib.asynccontextmanager
async def leased(store: DeliveryStore, payment_id: bytes, lease: str) -> AsyncIterator[None]:
    """Extend a lease during work that may take longer than the lease."""

    async def extend() -> None:
        while True:
            await asyncio.sleep(_LEASE_SECONDS / 3)
            try:
                is_ours = await store.extend(payment_id, lease, _LEASE_SECONDS)
            except Exception:
                logger.exception("The lease of payment 0x%s was not extended.", payment_id.hex())
                continue
            if not is_ours:
                logger.warning("Another request has the lease of payment 0x%s.", payment_id.hex())

    extending = asyncio.create_task(extend())
    try:
        yield
    finally:
        extending.cancel()
