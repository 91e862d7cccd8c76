"""Buys once with the PyPI client, which does not know the escrow, and prints the response as JSON: ordinary_buyer.py <url>."""

import json
import os
import sys

from eth_account import Account
from x402 import x402ClientSync
from x402.http.clients.requests import x402_requests
from x402.mechanisms.evm.exact import ExactEvmScheme

payer = Account.from_key(os.environ["PAYER_PRIVATE_KEY"])
session = x402_requests(x402ClientSync().register("eip155:8453", ExactEvmScheme(payer)))
answer = session.post(sys.argv[1])
print(json.dumps({"status": answer.status_code, "body": answer.text, "headers": dict(answer.headers)}))
