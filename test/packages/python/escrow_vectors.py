"""Prints the Python package's values for test/vectors/escrow.json: escrow_vectors.py <file>."""

import json
import sys

from eth_account import Account

from agent_payment_trust.escrow.contest import ContestTerms
from agent_payment_trust.escrow.delivery import Delivery, sign_delivery
from agent_payment_trust.escrow.payment import Payment, account_signature, digest_of
from agent_payment_trust.escrow.payment_info import PaymentInfo, payer_agnostic_nonce
from agent_payment_trust.escrow.terms import EscrowFacts, Offer, Token, requirements

with open(sys.argv[1], encoding="utf-8") as file:
    given = json.load(file)
merchant = Account.from_key(given["keys"]["merchant"])


def computed(vector):
    accepts, info, delivered = vector["accepts"], vector["paymentInfo"], vector["delivery"]
    extra = accepts["extra"]
    is_operator = accepts["scheme"] == "auth-capture"
    address = extra["captureAuthorizer" if is_operator else "escrowAddress"]
    collector = "0x8612dfdc421f80336cd14E8EF9cb1E765dB5ab88" if is_operator else address
    token = Token(accepts["asset"], extra["name"], extra["version"])
    domain = ("Agent Payment Trust Delivery", "1")
    custody = extra["authCaptureEscrow"] if is_operator else address
    fee = info["feeReceiver"]
    escrow = EscrowFacts(accepts["scheme"], 8453, address, custody, collector, token, fee, domain)
    stated = vector.get("contest")
    contest = None if stated is None else ContestTerms(stated["seconds"], stated["conditions"])
    offer = Offer(escrow, merchant.address, int(accepts["amount"]), contest)
    salt = 0x5555 if contest is None else contest.salt(int(stated["salt_nonce"], 16))
    terms = PaymentInfo(
        info["operator"],
        info["payer"],
        info["receiver"],
        info["token"],
        int(info["maxAmount"]),
        info["preApprovalExpiry"],
        info["authorizationExpiry"],
        info["refundExpiry"],
        info["minFeeBps"],
        info["maxFeeBps"],
        fee,
        salt,
    )
    payment = Payment(offer, terms, bytes.fromhex(vector["authorization"]["signature"][2:]))
    body = Delivery(delivered["status"], (("content-type", delivered["content_type"]),), delivered["body"].encode())
    return {
        "accepts": requirements(offer, given["now"]),
        "salt": str(salt),
        "nonce": f"0x{payer_agnostic_nonce(8453, custody, terms).hex()}",
        "payment_id": f"0x{payment.id.hex()}",
        "digest": f"0x{digest_of(payment).hex()}",
        "is_signed": account_signature(payment) is not None,
        "delivery": sign_delivery(merchant, offer, payment.id, body),
    }


print(json.dumps([computed(vector) for vector in given["vectors"]]))
