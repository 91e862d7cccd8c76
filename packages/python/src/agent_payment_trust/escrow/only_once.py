"""One delivery per payment, regardless of the number of processes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator

from .store import Claim, DeliveryStore, KeptDelivery

logger = logging.getLogger("agent_payment_trust.escrow")

#: The time for which a dead process keeps others from making its delivery, in seconds.
_LEASE_SECONDS = 60.0
#: The time that a request waits for a delivery that another one is making, in seconds.
_WAIT_SECONDS = 25.0
_LONGEST_PAUSE_SECONDS = 2.0


async def claim_delivery(store: DeliveryStore, payment_id: bytes, resource: str) -> KeptDelivery | Claim:
    """Wait until a delivery exists or is the caller's to make, at most 25 seconds.

    A claim without a lease is not the caller's: the payment buys another resource, or its delivery is still being made.
    """
    until, pause = time.monotonic() + _WAIT_SECONDS, 0.1
    while True:
        claim = await store.claim(payment_id, resource, _LEASE_SECONDS)
        if claim.resource != resource:
            return claim
        # The previous lease holder may have stored it just now.
        kept = await store.get(payment_id)
        if kept is not None:
            return kept
        if claim.lease is not None or time.monotonic() + pause > until:
            return claim
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
