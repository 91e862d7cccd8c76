"""FastAPI shops: shop.py <port>..., with the settings of each in SHOPS. Prints a line per run of a handler."""

import asyncio

import uvicorn
from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel
from serve_shops import serve_shops
from shop_options import options_of

from agent_payment_trust.escrow.fastapi import escrowed


async def validate(request: Request):
    return "A haiku has 3 lines." if request.query_params.get("lines") == "4" else None


def open_shop(port, **settings):
    options, contested_options = options_of(**settings)
    app = FastAPI()
    shop = APIRouter(route_class=escrowed(**options, validate=validate))
    contested = APIRouter(route_class=escrowed(**contested_options))

    @contested.post("/pond")
    async def pond():
        return {"haiku": "An old silent pond"}

    @contested.post("/lake")
    async def lake():
        return {"haiku": "An old silent lake"}

    class Order(BaseModel):
        lines: int

    def record(request, name):
        print(f"{name} {request.state.escrow_payment_id}", flush=True)

    @shop.post("/haiku")
    async def haiku(request: Request):
        record(request, "haiku")
        await asyncio.sleep(0.2)
        return JSONResponse({"haiku": "An old silent pond"}, headers={"set-cookie": "a=1"})

    @shop.post("/typed")
    def typed(order: Order, request: Request):
        record(request, "typed")
        return {"lines": order.lines}

    @shop.post("/stream")
    async def stream(request: Request):
        record(request, "stream")

        async def words():
            for word in ("An", " old"):
                yield word

        return StreamingResponse(words(), media_type="text/plain")

    @shop.post("/bytes")
    async def some_bytes(request: Request):
        return Response(b"\xff\xfe" * 100_000, media_type="application/octet-stream")

    @shop.post("/control")
    async def control(request: Request):
        return Response("\x01" * 200_000, media_type="text/plain")

    @shop.post("/huge")
    async def huge(request: Request):
        return Response("x" * 300_000, media_type="text/plain")

    @shop.post("/among")
    async def among(request: Request):
        record(request, "among")
        return {"haiku": "An old silent pond", "error": "among the goods"}

    @shop.post("/broken")
    async def broken(request: Request):
        record(request, "broken")
        raise RuntimeError("out of frogs")

    @shop.post("/gone")
    async def gone(request: Request):
        record(request, "gone")
        raise HTTPException(410, "sold out")

    failures = []

    @shop.post("/once-broken")
    async def once_broken():
        failures.append(1)
        return JSONResponse({"error": "no ink"}, 500) if len(failures) == 1 else {"haiku": "An old silent pond"}

    app.include_router(shop)
    app.include_router(contested)

    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


serve_shops(open_shop)
