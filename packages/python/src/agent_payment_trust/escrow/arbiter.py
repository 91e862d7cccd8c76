"""The arbiter's decision on a delivery."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Literal

import httpx
from eth_account.signers.local import LocalAccount

from .delivery import Delivery, on_wire, sign_delivery
from .payment import Payment
from .payment_info import MEMBERS
from .store import DeliveryStore, Ending

_Answer = Ending | Literal["pending", "refused"]

logger = logging.getLogger("agent_payment_trust.escrow")

_TIMEOUT_SECONDS = 30
#: The time that a buyer waits for the decision.
_DECISION_WITHIN_SECONDS = 5
_LONGEST_RETRY_SECONDS = 60
#: Statuses for requests that come too early or too often, and may be accepted later.
_PASSING = (404, 408, 425, 429)


class Arbiter:
    """Forwards deliveries to ``POST {url}/escrow/verify``, signed by the merchant."""

    def __init__(self, url: str, account: LocalAccount, store: DeliveryStore) -> None:
        self.url = url
        self._account = account
        self._store = store
        self._tasks: dict[bytes, asyncio.Task[None]] = {}

    async def decide(self, payment: Payment, delivery: Delivery) -> _Answer:
        """Forward a delivery and wait at most 5 seconds.

        If it is still pending, retry in the background until the arbiter decides or no release is possible.

        ``ended`` means that the merchant is not paid for it, and ``refused`` that it is not paid now.
        """
        first = asyncio.create_task(self._attempt(payment, delivery))
        done, _ = await asyncio.wait([first], timeout=_DECISION_WITHIN_SECONDS)
        answer = first.result() if done else "pending"
        if answer == "pending" and payment.id not in self._tasks:
            task = asyncio.create_task(self._retry(payment, delivery, first))
            self._tasks[payment.id] = task
            task.add_done_callback(lambda _: self._tasks.pop(payment.id, None))
        return answer

    async def _retry(self, payment: Payment, delivery: Delivery, first: asyncio.Task[_Answer]) -> None:
        answer, wait = await first, 1
        while answer == "pending" and time.time() < payment.info.authorization_expiry:
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_RETRY_SECONDS)
            if await self._is_decided(payment.id):
                return
            answer = await self._attempt(payment, delivery)

    async def _record(self, payment_id: bytes, ending: Ending) -> None:
        try:
            await self._store.decide(payment_id, ending)
        except Exception:
            logger.exception("The decision on payment 0x%s could not be stored: %s", payment_id.hex(), ending)

    async def _is_decided(self, payment_id: bytes) -> bool:
        """Return whether another process has the arbiter's decision."""
        try:
            kept = await self._store.get(payment_id)
        except Exception:
            logger.exception("The store of deliveries could not be read.")
            return False
        return kept is not None and kept.decision != "pending"

    async def _attempt(self, payment: Payment, delivery: Delivery) -> _Answer:
        try:
            response = await self._forward(payment, delivery)
            answer = response.json()
        except (httpx.HTTPError, ValueError) as error:
            logger.warning("The delivery for payment 0x%s is not decided yet: %r", payment.id.hex(), error)
            return "pending"
        code = answer.get("code") if isinstance(answer, dict) else None
        decision = answer.get("decision") if isinstance(answer, dict) else None
        if response.is_success and (decision == "release" or decision == "refund"):
            await self._record(payment.id, decision)
            return "release" if decision == "release" else "refund"
        logger.warning("The arbiter returned %s for 0x%s: %s", response.status_code, payment.id.hex(), response.text)
        if code == "escrow_over":
            await self._record(payment.id, "ended")
            return "ended"
        is_final = response.is_client_error and response.status_code not in _PASSING
        return "refused" if is_final or code == "payer_gas_spent" else "pending"

    async def _forward(self, payment: Payment, delivery: Delivery) -> httpx.Response:
        contest = payment.offer.contest
        info = dict(zip((name for name, _ in MEMBERS), payment.info.as_tuple(), strict=True))
        body = {
            "paymentInfo": {**info, "maxAmount": str(info["maxAmount"]), "salt": str(info["salt"])},
            "response": on_wire(delivery),
            "signature": sign_delivery(self._account, payment.offer, payment.id, delivery),
            "delivery_version": 1,
            **({} if contest is None else {"contest": contest.on_wire(payment.salt_nonce)}),
        }
        async with httpx.AsyncClient(timeout=_TIMEOUT_SECONDS) as http:
            return await http.post(f"{self.url}/escrow/verify", json=body, headers={"accept": "application/json"})
