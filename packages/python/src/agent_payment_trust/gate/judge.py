"""Whether a payment may be accepted."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from x402.http.types import RouteConfig, RoutesConfig
from x402.schemas import AbortResult
from x402.schemas.hooks import VerifyContext, VerifyResultContext

from ..errors import InputError, Refusal
from ..issuer import origin_of
from ..requirement import parse_requirements, unmet
from ..sources import fetch
from ..strict_json import JsonObject, parse_unsigned_json

logger = logging.getLogger("agent_payment_trust.gate")

_TIMEOUT_SECONDS = 3.0
#: Payloads of these schemes name their payer in ``authorization.from`` or ``permit2Authorization.from``.
_SCHEMES = ("exact", "upto")
_NAMES = ("authorization", "permit2Authorization")


@dataclass(frozen=True)
class Refused:
    """The response to a payment that is not accepted. Nothing was charged."""

    status: int
    body: dict[str, Any]

    @property
    def headers(self) -> dict[str, str]:
        again = {"Retry-After": "5"} if self.status == 503 else {}
        return {"Content-Type": "application/json", "Cache-Control": "no-store", **again}


@dataclass
class Judgment:
    """The gate's finding about the payment of one request."""

    wallet: str | None = None
    refused: Refused | None = None


#: The judgment of the request in progress.
CURRENT: ContextVar[Judgment | None] = ContextVar("agent_payment_trust_gate", default=None)

#: For a payment that x402 accepted without calling the gate.
NOT_JUDGED = Refused(500, {"error": "The gate did not judge this payment."})


@dataclass(frozen=True)
class Gate:
    """Admits the payments of verified wallets.

    :param service: the trust service, such as ``https://trust.example``
    :param require: the tests that a wallet must have passed, such as ``["can_pay", "retry_safety"]``. Every wallet must
        also be verified, with a current PASS and no current FAIL.
    :raises ValueError: if ``service`` is not an origin
    :raises InputError: for an unknown requirement
    """

    service: str
    require: Sequence[str] = ("verified",)
    _required: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        if origin_of(self.service) is None:
            raise ValueError(f"service is {self.service!r}; expected an origin like https://trust.example")
        names = [self.require] if isinstance(self.require, str) else self.require
        required = dict.fromkeys(["verified", *parse_requirements(",".join(names))])
        object.__setattr__(self, "_required", tuple(required))

    def before_verify(self, context: VerifyContext) -> AbortResult | None:
        """Serve as the hook for ``on_before_verify``: the payload here is the one that the facilitator will judge."""
        judgment = CURRENT.get() or Judgment()
        judgment.wallet, judgment.refused = None, None
        requirements = context.requirements
        try:
            wallet = payer_of(context.payment_payload.payload, requirements.scheme, requirements.network)
        except ValueError as error:
            return _refuse(judgment, Refused(403, _refusal(str(error))))
        try:
            record = self._look_up(wallet)
        except (InputError, Refusal) as error:
            logger.warning("Wallet %s could not be looked up: %s", wallet, error)
            why = "The wallet could not be looked up. Send the same payment again."
            return _refuse(judgment, Refused(503, _refusal(why, wallet=wallet)))
        missing = unmet(record, self._required, datetime.now(timezone.utc), str(requirements.network))
        if not missing:
            judgment.wallet = wallet
            return None
        lacking = ", ".join(name for name in missing if name != "verified")
        why = "is not verified" if "verified" in missing else f"has no current PASS for {lacking}"
        reasons, how = record.get("reasons"), record.get("how_to_test")
        more = {"wallet": wallet, "missing": list(missing), "reasons": reasons or [], "how_to_test": how}
        return _refuse(judgment, Refused(403, _refusal(f"Wallet {wallet} {why}.", **more)))

    def after_verify(self, context: VerifyResultContext) -> AbortResult | None:
        """Serve as the hook for ``on_after_verify``: the facilitator must name the wallet that was judged."""
        judgment, payer = CURRENT.get(), context.result.payer
        if judgment is None or judgment.wallet is None or payer is None or payer.lower() == judgment.wallet.lower():
            return None
        judgment.wallet = None
        why = "The facilitator names a different wallet from the payment."
        return _refuse(judgment, Refused(403, _refusal(why)))

    def _look_up(self, wallet: str) -> JsonObject:
        """Fetch the wallet's verification record."""
        url = f"{self.service.rstrip('/')}/verify?wallet={wallet}"
        record = parse_unsigned_json(fetch(url, _TIMEOUT_SECONDS))
        if isinstance(record, dict) and str(record.get("wallet")).lower() == wallet.lower():
            return record
        raise InputError(f"{url} does not return the record of this wallet")


def payer_of(payload: Mapping[str, Any], scheme: str, network: str) -> str:
    """Return the wallet that must have signed a payment.

    Facilitators differ in which of two names they read, and some ignore case, so a payment with two names is refused.

    :raises ValueError: for a payment that does not name exactly one wallet
    """
    if scheme not in _SCHEMES or not network.startswith("eip155:"):
        raise ValueError(f"This shop cannot identify the payer in the scheme {scheme} on {network}.")
    authorization = _only(payload, "authorization$", _NAMES)
    payer = _only(authorization, "^from$", ("from",))
    if isinstance(payer, str) and re.fullmatch(r"0x[0-9a-fA-F]{40}", payer):
        return payer
    raise ValueError("The payment does not name the wallet that pays.")


def with_head(routes: RoutesConfig) -> RoutesConfig:
    """Return the routes, with HEAD priced like GET: frameworks answer it with the handler of GET."""
    if isinstance(routes, RouteConfig) or "accepts" in routes:
        return routes
    heads = {re.sub(r"^GET\s", "HEAD ", key, flags=re.IGNORECASE): config for key, config in routes.items()}
    return {**heads, **routes}


def _only(value: object, pattern: str, names: Sequence[str]) -> object:
    """Return the one member with such a name; None if its name is not in the list."""
    if not isinstance(value, dict):
        return None
    found = [key for key in value if re.search(pattern, key, re.IGNORECASE)]
    if len(found) > 1:
        raise ValueError("The payment names more than one wallet that pays.")
    return value[found[0]] if found and found[0] in names else None


def _refuse(judgment: Judgment, refused: Refused) -> AbortResult:
    judgment.refused = refused
    return AbortResult(reason=refused.body["error"])


def _refusal(why: str, **more: object) -> dict[str, Any]:
    return {"error": f"{why} Nothing was charged.", **more}
