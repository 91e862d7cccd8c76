"""Stores for deliveries, so that a payment buys one response and can fetch it again."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import uuid
from collections import OrderedDict
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from .delivery import Delivery

#: ``ended``: the hold ended before the arbiter had the delivery, so it is never returned to the buyer.
Ending = Literal["release", "refund", "ended"]

_MOST_DELIVERIES = 10_000
_MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class KeptDelivery:
    delivery: Delivery
    #: Method and path with its query, as bought.
    resource: str
    #: The transaction of the hold.
    transaction: str
    decision: Ending | Literal["pending"] = "pending"


@dataclass(frozen=True)
class Claim:
    """A request's right to make the delivery of a payment."""

    #: The first resource that the payment was claimed for.
    resource: str
    #: Identifies the claim; None while another request has it, or if the payment buys another resource.
    lease: str | None


class DeliveryStore(Protocol):
    """Stores deliveries by payment id. Each method is atomic, and raises if the store cannot be reached.

    With several processes, or goods that must not be made twice after a restart, use a shared store:
    ``PostgresStore``, or your own.
    """

    async def get(self, payment_id: bytes) -> KeptDelivery | None: ...

    async def claim(self, payment_id: bytes, resource: str, seconds: float) -> Claim:
        """Tie a payment to a resource, permanently, and let one caller make its delivery for this number of seconds."""
        ...

    async def extend(self, payment_id: bytes, lease: str, seconds: float) -> bool:
        """Extend a lease to this number of seconds from now. False if it ran out and another caller may have one."""
        ...

    async def keep(self, payment_id: bytes, kept: KeptDelivery) -> KeptDelivery:
        """Store a delivery unless there already is one, and return the stored one."""
        ...

    async def decide(self, payment_id: bytes, ending: Ending) -> None:
        """Record the arbiter's decision. Does nothing for a delivery that is not stored."""
        ...


@dataclass
class _Claimed:
    resource: str
    lease: str
    until: float


class MemoryStore:
    """Stores deliveries in memory. Beyond the limits, the oldest decided one is dropped first, then the oldest."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, KeptDelivery] = OrderedDict()
        self._claims: OrderedDict[bytes, _Claimed] = OrderedDict()
        self._bytes = 0

    async def get(self, payment_id: bytes) -> KeptDelivery | None:
        return self._kept.get(payment_id)

    async def claim(self, payment_id: bytes, resource: str, seconds: float) -> Claim:
        earlier, kept, now = self._claims.get(payment_id), self._kept.get(payment_id), time.monotonic()
        bound = earlier.resource if earlier is not None else resource if kept is None else kept.resource
        if bound != resource or (earlier is not None and now < earlier.until):
            return Claim(bound, None)
        lease = str(uuid.uuid4())
        self._claims[payment_id] = _Claimed(resource, lease, now + seconds)
        if len(self._claims) > _MOST_DELIVERIES:
            ended = [one for one, claimed in self._claims.items() if now >= claimed.until]
            for one in ended[: len(self._claims) - _MOST_DELIVERIES]:
                del self._claims[one]
        return Claim(resource, lease)

    async def extend(self, payment_id: bytes, lease: str, seconds: float) -> bool:
        claimed, now = self._claims.get(payment_id), time.monotonic()
        if claimed is None or claimed.lease != lease or now >= claimed.until:
            return False
        claimed.until = now + seconds
        return True

    async def keep(self, payment_id: bytes, kept: KeptDelivery) -> KeptDelivery:
        earlier = self._kept.get(payment_id)
        if earlier is not None:
            return earlier
        self._kept[payment_id] = kept
        self._bytes += len(kept.delivery.body)
        while len(self._kept) > _MOST_DELIVERIES or self._bytes > _MOST_BYTES:
            decided = (one for one, other in self._kept.items() if other.decision != "pending")
            oldest = next(decided, next(iter(self._kept)))
            self._bytes -= len(self._kept.pop(oldest).delivery.body)
            self._claims.pop(oldest, None)
        return kept

    async def decide(self, payment_id: bytes, ending: Ending) -> None:
        kept = self._kept.get(payment_id)
        if kept is not None:
            self._kept[payment_id] = replace(kept, decision=ending)


#: Shared by all routes of the process, so that one payment cannot buy at two of them.
SHARED = MemoryStore()

#: The table of ``PostgresStore``. Rows may be deleted after three days, because no payment waits longer.
POSTGRES_TABLE = """
create table if not exists escrow_deliveries (
  id text primary key,
  resource text not null,
  lease text not null,
  lease_until timestamptz not null,
  head jsonb,
  body bytea,
  decision text,
  created_at timestamptz not null default now()
)"""

_CLAIM = """
insert into escrow_deliveries as claimed (id, resource, lease, lease_until)
values (%s, %s, %s, clock_timestamp() + %s * interval '1 second')
on conflict (id) do update set lease = excluded.lease, lease_until = excluded.lease_until
where claimed.resource = excluded.resource and claimed.head is null and claimed.lease_until <= clock_timestamp()
returning resource, lease"""

_EXTEND = """
update escrow_deliveries set lease_until = clock_timestamp() + %s * interval '1 second'
where id = %s and lease = %s and lease_until > clock_timestamp()
returning id"""

_KEEP = """
insert into escrow_deliveries as kept (id, resource, lease, lease_until, head, body, decision)
values (%s, %s, '', clock_timestamp(), %s::jsonb, decode(%s, 'base64'), %s)
on conflict (id) do update set head = excluded.head, body = excluded.body, decision = excluded.decision
where kept.head is null
returning id"""

_GET = """
select resource, head::text, encode(body, 'base64'), decision from escrow_deliveries
where id = %s and head is not null"""

_DECIDE = "update escrow_deliveries set decision = %s where id = %s and head is not null returning id"


class Pool(Protocol):
    """The parts of ``psycopg_pool.ConnectionPool`` that are used."""

    def connection(self) -> AbstractContextManager[Any]: ...


class PostgresStore:
    """Stores deliveries in PostgreSQL, in the table ``POSTGRES_TABLE``, which you create once.

    Any number of processes, also of the TypeScript package, can share the table.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def get(self, payment_id: bytes) -> KeptDelivery | None:
        rows = await self._rows(_GET, _hex(payment_id))
        if not rows:
            return None
        resource, text, body, decision = rows[0]
        head = json.loads(text)
        headers = tuple((name, value) for name, value in head["headers"])
        delivery = Delivery(head["status"], headers, base64.b64decode(body))
        return KeptDelivery(delivery, resource, head["transaction"], decision)

    async def claim(self, payment_id: bytes, resource: str, seconds: float) -> Claim:
        claimed = await self._rows(_CLAIM, _hex(payment_id), resource, str(uuid.uuid4()), seconds)
        if claimed:
            return Claim(*claimed[0])
        rows = await self._rows("select resource from escrow_deliveries where id = %s", _hex(payment_id))
        return Claim(rows[0][0] if rows else resource, None)

    async def extend(self, payment_id: bytes, lease: str, seconds: float) -> bool:
        return len(await self._rows(_EXTEND, seconds, _hex(payment_id), lease)) == 1

    async def keep(self, payment_id: bytes, kept: KeptDelivery) -> KeptDelivery:
        delivery = kept.delivery
        head = {"status": delivery.status, "headers": delivery.headers, "transaction": kept.transaction}
        body = base64.b64encode(delivery.body).decode("ascii")
        await self._rows(_KEEP, _hex(payment_id), kept.resource, json.dumps(head), body, kept.decision)
        stored = await self.get(payment_id)
        if stored is None:
            raise LookupError(f"The delivery of payment {_hex(payment_id)} was stored but is gone.")
        return stored

    async def decide(self, payment_id: bytes, ending: Ending) -> None:
        await self._rows(_DECIDE, ending, _hex(payment_id))

    async def _rows(self, text: str, *values: object) -> list[Any]:
        """Execute and commit a statement, and return its rows.

        Runs in a thread, so that every loop can use the same pool.
        """

        def run() -> list[Any]:
            with self._pool.connection() as connection:
                rows: list[Any] = connection.execute(text, values).fetchall()
                return rows

        return await asyncio.to_thread(run)


def _hex(payment_id: bytes) -> str:
    return f"0x{payment_id.hex()}"
