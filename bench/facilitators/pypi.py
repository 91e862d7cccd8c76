"""The facilitator of the PyPI package x402 for `exact` on one chain. Reads BASE_RPC_URL, FACILITATOR_PRIVATE_KEY, CHAIN_ID, PORT."""

import logging
import os
from contextlib import asynccontextmanager

import uvicorn
from fastapi import Body, FastAPI
from x402 import x402FacilitatorSync
from x402.mechanisms.evm import FacilitatorWeb3Signer
from x402.mechanisms.evm.exact import register_exact_evm_facilitator
from x402.schemas import PaymentPayload, PaymentRequirements

logging.disable(logging.WARNING)
signer = FacilitatorWeb3Signer(os.environ["FACILITATOR_PRIVATE_KEY"], os.environ["BASE_RPC_URL"])
facilitator = x402FacilitatorSync()
register_exact_evm_facilitator(facilitator, signer, f"eip155:{os.environ['CHAIN_ID']}")


@asynccontextmanager
async def lifespan(_: FastAPI):
    print("ready", flush=True)
    yield


app = FastAPI(lifespan=lifespan)


def parsed(body: dict) -> tuple[PaymentPayload, PaymentRequirements]:
    payload = PaymentPayload.model_validate(body["paymentPayload"])
    return payload, PaymentRequirements.model_validate(body["paymentRequirements"])


def wire(response) -> dict:
    return response.model_dump(by_alias=True, exclude_none=True)


# Not async, so that FastAPI runs these in its pool of 40 threads, because web3 blocks.
@app.get("/supported")
def supported() -> dict:
    return wire(facilitator.get_supported())


@app.post("/verify")
def verify(body: dict = Body()) -> dict:
    return wire(facilitator.verify(*parsed(body)))


@app.post("/settle")
def settle(body: dict = Body()) -> dict:
    return wire(facilitator.settle(*parsed(body)))


uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="error", access_log=False)
