"""Buys once with a stock client behind a retry wrapper: python client.py <client> <wrapper> <url>, PAYER_PRIVATE_KEY=0x…

Tenacity tries three times in all, on a lost connection, a timeout and a status from 400 up.
"""

import asyncio
import os
import sys

import requests
from eth_account import Account
from tenacity import retry, stop_after_attempt, wait_fixed
from x402 import x402Client, x402ClientSync
from x402.http.clients.httpx import x402HttpxClient
from x402.http.clients.requests import x402_requests
from x402.mechanisms.evm.exact.register import register_exact_evm_client
from x402.mechanisms.evm.signers import EthAccountSigner

client, wrapper, url = sys.argv[1:]
signer = EthAccountSigner(Account.from_key(os.environ["PAYER_PRIVATE_KEY"]))
patient = retry(stop=stop_after_attempt(3), wait=wait_fixed(0.2), reraise=True)


async def with_httpx() -> None:
    async with x402HttpxClient(register_exact_evm_client(x402Client(), signer)) as http:

        async def buy() -> None:
            (await http.post(url)).raise_for_status()

        await (patient(buy) if wrapper == "tenacity around it" else buy)()


def with_requests() -> None:
    http: requests.Session = x402_requests(register_exact_evm_client(x402ClientSync(), signer))

    def buy() -> None:
        http.post(url).raise_for_status()

    (patient(buy) if wrapper == "tenacity around it" else buy)()


try:
    asyncio.run(with_httpx()) if client == "x402[httpx]" else with_requests()
    print("answered")
except Exception as error:  # Whatever it is, the client has given up.
    print("gave up:", repr(error)[:200])
