"""Flask shops: flask_shop.py <port>..., with the settings of each in SHOPS. Prints a line per run of a view."""

import time

from flask import Flask, Response, abort, g, request, session
from serve_shops import serve_shops
from shop_options import options_of
from werkzeug.serving import run_simple

from agent_payment_trust.escrow.flask import escrowed


def open_shop(port, **settings):
    options, contested_options = options_of(**settings)
    app = Flask(__name__)
    app.secret_key = "a test's"

    def validate():
        if request.args.get("lines") == "none":
            raise RuntimeError("out of ink")
        return "A haiku has 3 lines." if request.args.get("lines") == "4" else None

    sold = escrowed(**options, validate=validate)
    contested = escrowed(**contested_options)

    def record(name):
        print(f"{name} {g.escrow_payment_id}", flush=True)

    @app.post("/haiku")
    @sold
    def haiku():
        record("haiku")
        time.sleep(0.2)
        session["bought"] = True
        return {"haiku": "An old silent pond"}, 200, {"x-own": "1"}

    @app.post("/echo/<name>")
    @sold
    async def echo(name):
        record("echo")
        return {"name": name, "body": request.get_json(), "conditions": [*request.headers.keys()].count("If-None-Match")}

    @app.post("/stream")
    @sold
    def stream():
        return Response(iter(["An", " old"]), mimetype="text/plain")

    @app.post("/among")
    @sold
    def among():
        return {"haiku": "An old silent pond", "error": "among the goods"}

    @app.post("/broken")
    @sold
    def broken():
        raise RuntimeError("out of frogs")

    @app.post("/gone")
    @sold
    def gone():
        abort(410)

    @app.post("/pond")
    @contested
    def pond():
        return {"haiku": "An old silent pond"}

    @app.post("/lake")
    @contested
    def lake():
        return {"haiku": "An old silent lake"}

    failures = []

    @app.post("/once-broken")
    @sold
    def once_broken():
        failures.append(1)
        return ({"error": "no ink"}, 500) if len(failures) == 1 else {"haiku": "An old silent pond"}

    run_simple("127.0.0.1", port, app, threaded=True)


serve_shops(open_shop)
