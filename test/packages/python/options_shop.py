"""A shop that ordinary buyers can pay: options_shop.py <port> <fastapi or flask>. Prints a line for each run of a handler.

MERCHANT_PRIVATE_KEY may be missing until the first request if KEYS is "late". DATABASE_URL names a shared store.
"""

import logging
import os
import sys
import time

from eth_account import Account

from agent_payment_trust.escrow import PostgresStore

logging.basicConfig(stream=sys.stdout, format="%(message)s")
logging.getLogger("werkzeug").setLevel(logging.ERROR)
port, framework = int(sys.argv[1]), os.environ["FRAMEWORK"]


def account():
    return Account.from_key(os.environ["MERCHANT_PRIVATE_KEY"])


def rpc_url():
    return os.environ["BASE_RPC_URL"]


store = None
if "DATABASE_URL" in os.environ:
    from psycopg_pool import ConnectionPool

    store = PostgresStore(ConnectionPool(os.environ["DATABASE_URL"], open=True))
is_late = os.environ.get("KEYS") == "late"
options = {
    "account": account if is_late else account(),
    "rpc_url": rpc_url if is_late else rpc_url(),
    "arbiter_url": os.environ["ARBITER_URL"],
    "price": "0.10",
    "exact": os.environ.get("EXACT") != "no",
    "store": store,
}
failures = []


def made(payment_id):
    print(f"haiku {payment_id}", flush=True)
    time.sleep(0.3)
    return {"haiku": "An old silent pond"}


if framework == "fastapi":
    import uvicorn
    from fastapi import APIRouter, FastAPI, Request
    from fastapi.responses import JSONResponse

    from agent_payment_trust.escrow.fastapi import escrowed

    shop = APIRouter(
        route_class=escrowed(
            **options, validate=lambda request: "3 lines." if request.query_params.get("lines") == "4" else None
        )
    )

    @shop.post("/haiku")
    def haiku(request: Request):
        return made(request.state.escrow_payment_id)

    @shop.post("/once-broken")
    def once_broken(request: Request):
        failures.append(1)
        return JSONResponse({"error": "no ink"}, 500) if len(failures) == 1 else {"haiku": "An old silent pond"}

    app = FastAPI()
    app.include_router(shop)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
else:
    from flask import Flask, g, request

    from agent_payment_trust.escrow.flask import escrowed

    app = Flask(__name__)
    sold = escrowed(**options, validate=lambda: "3 lines." if request.args.get("lines") == "4" else None)

    @app.post("/haiku")
    @sold
    def haiku():
        return made(g.escrow_payment_id)

    @app.post("/once-broken")
    @sold
    def once_broken():
        failures.append(1)
        return ({"error": "no ink"}, 500) if len(failures) == 1 else {"haiku": "An old silent pond"}

    app.run(host="127.0.0.1", port=port, threaded=True)
