"""Gated shops in one process: gate_shop.py <port>..., with the settings of each in SHOPS, a JSON list."""

import os

import uvicorn
from fastapi import FastAPI
from flask import Flask
from serve_shops import serve_shops
from werkzeug.serving import run_simple
from x402.http import FacilitatorConfig, HTTPFacilitatorClient, HTTPFacilitatorClientSync, PaymentOption, RouteConfig
from x402.mechanisms.evm.exact.server import ExactEvmScheme
from x402.schemas import SkipVerifyResult, VerifyResponse
from x402.server import x402ResourceServer, x402ResourceServerSync

from agent_payment_trust.gate.fastapi import payment_middleware as fastapi_middleware
from agent_payment_trust.gate.flask import payment_middleware as flask_middleware

HAIKU = {"haiku": "An old silent pond"}
config = FacilitatorConfig(url=os.environ["FACILITATOR_URL"])
routes = {
    f"{method} /haiku": RouteConfig(
        accepts=PaymentOption(scheme="exact", price="$0.01", network="eip155:8453", pay_to=os.environ["SHOP"])
    )
    for method in ("GET", "POST")
}


def verify_all(_context):
    return SkipVerifyResult(result=VerifyResponse(is_valid=True))


def registered(server, skips):
    server.register("eip155:8453", ExactEvmScheme())
    if skips:
        server.on_before_verify(verify_all)
    return server


def flask_shop(port, skips, gate):
    server = registered(x402ResourceServerSync(HTTPFacilitatorClientSync(config)), skips)
    app = Flask(__name__)

    @app.route("/haiku", methods=["GET", "POST"])
    def haiku():
        print("served", flush=True)
        return HAIKU

    @app.get("/free")
    def free():
        return HAIKU

    flask_middleware(app, routes, server, **gate)
    run_simple("127.0.0.1", port, app, threaded=True)


def fastapi_shop(port, skips, gate):
    server = registered(x402ResourceServer(HTTPFacilitatorClient(config)), skips)
    app = FastAPI()

    @app.api_route("/haiku", methods=["GET", "HEAD", "POST"])
    def haiku():
        print("served", flush=True)
        return HAIKU

    @app.get("/free")
    def free():
        return HAIKU

    app.middleware("http")(fastapi_middleware(routes, server, **gate))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


def open_shop(port, framework, service, require=("verified",), skips=False):
    gate = {"service": service, "require": require}
    {"fastapi": fastapi_shop, "flask": flask_shop}[framework](port, skips, gate)


serve_shops(open_shop)
