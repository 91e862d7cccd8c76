"""Buy from and sell through the service's escrow.

Needs the extra ``escrow``; a seller also needs FastAPI or Flask.

A seller uses ``agent_payment_trust.escrow.fastapi.escrowed`` or ``agent_payment_trust.escrow.flask.escrowed``.
"""

try:
    import eth_account  # noqa: F401
    import web3  # noqa: F401
    import x402  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"{error.name} is not installed: pip install 'agent-payment-trust[escrow]'", name=error.name
    ) from error

from .client import AuthCaptureEvmScheme, RefusedTerms, trusted_operators
from .store import POSTGRES_TABLE, DeliveryStore, PostgresStore

__all__ = [
    "POSTGRES_TABLE",
    "AuthCaptureEvmScheme",
    "DeliveryStore",
    "PostgresStore",
    "RefusedTerms",
    "trusted_operators",
]
