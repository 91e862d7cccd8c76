"""Signed offers and receipts of x402 (extension ``offer-receipt``)."""

from .check import Check, SignedReport, check_signed

__all__ = ["Check", "SignedReport", "check_signed"]
