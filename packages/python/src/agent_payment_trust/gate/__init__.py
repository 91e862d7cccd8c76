"""Sell to verified wallets only, with the server of the PyPI package ``x402``. Needs the extra ``gate``.

Use ``payment_middleware`` of ``agent_payment_trust.gate.fastapi`` or ``agent_payment_trust.gate.flask`` in place of
x402's own.
"""

try:
    import x402  # noqa: F401
except ImportError as error:
    raise ImportError("x402 is not installed: pip install 'agent-payment-trust[gate]'", name=error.name) from error

from .judge import Gate, payer_of

__all__ = ["Gate", "payer_of"]
