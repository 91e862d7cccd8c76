"""A gated shop: gate_shop.py <port>, with the framework, the facilitator, and the service in its environment."""

import os
import sys

from x402.http import FacilitatorConfig, HTTPFacilitatorClient, HTTPFacilitatorClientSync, PaymentOption, RouteConfig
from x402.mechanisms.evm.exact.server import ExactEvmScheme
from x402.schemas import SkipVerifyResult, VerifyResponse
from x402.server import x402ResourceServer, x402ResourceServerSync

IS_FLASK = os.environ["FRAMEWORK"] == "flask"
HAIKU = {"haiku": "An old silent pond"}
config = FacilitatorConfig(url=os.environ["FACILITATOR_URL"])
routes = {
    f"{method} /haiku": RouteConfig(
        accepts=PaymentOption(scheme="exact", price="$0.01", network="eip155:8453", pay_to=os.environ["SHOP"])
    )
    for method in ("GET", "POST")
}
gate = {"service": os.environ["SERVICE"], "require": os.environ.get("REQUIRE", "verified").split(",")}


def verify_all(_context):
    return SkipVerifyResult(result=VerifyResponse(is_valid=True))


if IS_FLASK:
    from flask import Flask

    from agent_payment_trust.gate.flask import payment_middleware

    server = x402ResourceServerSync(HTTPFacilitatorClientSync(config)).register("eip155:8453", ExactEvmScheme())
    app = Flask(__name__)

    @app.route("/haiku", methods=["GET", "POST"])
    def haiku():
        print("served", flush=True)
        return HAIKU

    @app.get("/free")
    def free():
        return HAIKU

else:
    from fastapi import FastAPI

    from agent_payment_trust.gate.fastapi import payment_middleware

    server = x402ResourceServer(HTTPFacilitatorClient(config)).register("eip155:8453", ExactEvmScheme())
    app = FastAPI()

    @app.api_route("/haiku", methods=["GET", "HEAD", "POST"])
    def haiku():
        print("served", flush=True)
        return HAIKU

    @app.get("/free")
    def free():
        return HAIKU


if os.environ.get("SKIPS"):
    server.on_before_verify(verify_all)
if IS_FLASK:
    from werkzeug.serving import run_simple

    payment_middleware(app, routes, server, **gate)
    run_simple("127.0.0.1", int(sys.argv[1]), app, threaded=True)
else:
    import uvicorn

    app.middleware("http")(payment_middleware(routes, server, **gate))
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
