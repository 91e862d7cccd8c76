"""Buys once with the PyPI client and prints the response as JSON: buyer.py <url> <trust service>."""

import asyncio
import json
import os
import sys

from eth_account import Account
from x402 import x402Client
from x402.http.clients import x402HttpxClient

from agent_payment_trust.escrow import AuthCaptureEvmScheme, trusted_operators


async def main(url, service):
    payer = Account.from_key(os.environ["PAYER_PRIVATE_KEY"])
    client = x402Client()
    client.register("eip155:*", AuthCaptureEvmScheme(payer, operators=trusted_operators(service)))
    async with x402HttpxClient(client, timeout=60) as http:
        try:
            answer = await http.post(url)
        except Exception as error:
            print(json.dumps({"refused": str(error)}))
            return
        sent = answer.request.headers.get("payment-signature")
        print(json.dumps({"status": answer.status_code, "body": answer.text, "headers": dict(answer.headers), "sent": sent}))


asyncio.run(main(*sys.argv[1:]))
