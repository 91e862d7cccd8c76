"""A shop behind the FastAPI middleware: python server.py <port> <facilitator>"""

import itertools
import sys

import uvicorn
from fastapi import FastAPI
from x402 import x402ResourceServer
from x402.http import FacilitatorConfig, HTTPFacilitatorClient
from x402.http.middleware.fastapi import payment_middleware
from x402.mechanisms.evm.exact import ExactEvmServerScheme

port, facilitator = sys.argv[1:]
server = x402ResourceServer(HTTPFacilitatorClient(FacilitatorConfig(url=facilitator)))
server.register("eip155:8453", ExactEvmServerScheme())
accepts = {
    "scheme": "exact",
    "price": "$0.001",
    "network": "eip155:8453",
    "payTo": "0x00000000000000000000000000000000000c0ffe",
}
runs = itertools.count(1)

app = FastAPI()
app.middleware("http")(
    payment_middleware({f"GET /{poem}": {"accepts": accepts} for poem in ("haiku", "sonnet")}, server)
)


@app.get("/haiku")
@app.get("/sonnet")
async def poem() -> dict:
    return {"poem": "rain on the roof", "run": next(runs)}


uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")
