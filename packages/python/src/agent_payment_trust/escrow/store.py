"""What was delivered, so that a payment buys one answer and gets it again."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Literal

from .delivery import Delivery

#: ``ended``: the hold ended before the arbiter had the delivery, so it is never given out.
Ending = Literal["release", "refund", "ended"]

_MOST_DELIVERIES = 10_000
_MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class KeptDelivery:
    delivery: Delivery
    #: Method and path with its query: what the payment bought.
    resource: str
    #: The transaction of the hold.
    transaction: str
    decision: Ending | Literal["pending"] = "pending"


class MemoryStore:
    """Deliveries by payment id. Past the limits, the oldest decided one is dropped first, then the oldest."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, KeptDelivery] = OrderedDict()
        self._bytes = 0

    def get(self, payment_id: bytes) -> KeptDelivery | None:
        return self._kept.get(payment_id)

    def keep(self, payment_id: bytes, kept: KeptDelivery) -> KeptDelivery:
        self._kept[payment_id] = kept
        self._bytes += len(kept.delivery.body)
        while len(self._kept) > _MOST_DELIVERIES or self._bytes > _MOST_BYTES:
            decided = (one for one, other in self._kept.items() if other.decision != "pending")
            dropped = self._kept.pop(next(decided, next(iter(self._kept))))
            self._bytes -= len(dropped.delivery.body)
        return kept

    def decide(self, payment_id: bytes, ending: Ending) -> None:
        kept = self._kept.get(payment_id)
        if kept is not None:
            self._kept[payment_id] = replace(kept, decision=ending)


#: Shared by all routes of the process, so that one payment cannot buy at two of them.
SHARED = MemoryStore()
