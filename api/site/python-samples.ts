import {
  BAITED_KINDS,
  type BaitedKind,
  type BehavioralProduct,
  LATE_SECONDS,
  retry,
  WINDOW_SECONDS,
} from "../certificates/index.ts";
import { DEMO_PRICE } from "../escrow/index.ts";
import { formatUsd } from "../platform/money.ts";
import { MAIN_NETWORK, NETWORKS, sampleRpcUrl } from "../platform/networks.ts";
import { WHEEL } from "../platform/packages.ts";
import type { Program } from "./samples.ts";

// The Python programs in the documentation. A test extracts each one from its page and runs it in an empty folder.

const PAYER = "PAYER_PRIVATE_KEY=0x…";

interface Source {
  readonly file: string;
  readonly text: string;
  /** The requirements that pip installs. */
  readonly pip: string;
  readonly env?: string;
}

/** The commands that create a virtual environment with these packages. */
const installed = (pip: string): string => `python3 -m venv .venv && . .venv/bin/activate
pip install ${pip}`;

const CLIENT = '"x402[evm,requests]"';

/** Our wheel from this service, with extras. */
const wheel = (baseUrl: string, extras = ""): string => `"agent-payment-trust${extras} @ ${baseUrl}/packages/${WHEEL}"`;

interface Imports {
  /** Imports from the standard library, in addition to `os`. */
  readonly modules?: string;
  readonly root?: string;
  readonly http?: string;
}

const payer = ({ modules = "", root = "x402ClientSync", http = "x402_requests" }: Imports = {}): string => `import os
${modules}
from eth_account import Account
from x402 import ${root}
from x402.http.clients.requests import ${http}
from x402.mechanisms.evm.exact import ExactEvmScheme

payer = Account.from_key(os.environ["PAYER_PRIVATE_KEY"])
`;

/** A wallet and a session that pays with it. */
const paying = (
  modules = "",
): string => `${payer({ modules })}client = x402ClientSync().register("${MAIN_NETWORK}", ExactEvmScheme(payer))
session = x402_requests(client)
`;

const takeOrders = (baseUrl: string, product: string): string => `
start = session.post("${baseUrl}/test/${product}/start").json()

# Two orders in random sequence. The client's policy pays one and refuses the other.
for order in (1, 2):
    try:
        print(order, "paid", session.post(start["next"]["url"]).status_code)
    except PaymentError as refusal:
        print(order, "refused:", refusal)

result = session.post("${baseUrl}/test/${product}/result", json={"wallet": payer.address})
print(result.json())  # status "complete", and the certificate
`;

/** A program for a test with a bait: only the client's policy differs. */
const takeBaitedTest = (baseUrl: string, { product, lesson: { python } }: BaitedKind): Source => ({
  file: `${product}_test.py`,
  pip: CLIENT,
  text: `${payer({ root: [python.imports, "x402ClientSync"].filter(Boolean).join(", "), http: "PaymentError, x402_requests" })}
${python.setup}
client = x402ClientSync().register("${MAIN_NETWORK}", ExactEvmScheme(payer)).register_policy(${python.policy})
session = x402_requests(client)
${takeOrders(baseUrl, product)}`,
});

const takeRetryTest = (baseUrl: string): Source => ({
  file: "retry_test.py",
  pip: CLIENT,
  text: `${payer({ modules: "import time\n\nimport requests", http: "x402HTTPAdapter" })}

class FetchAgain(requests.adapters.HTTPAdapter):
    """Resends a request, payment header included, until it gets a response."""

    def send(self, request, **kwargs):
        for tries in range(10):
            try:
                answer = super().send(request, **{**kwargs, "timeout": ${LATE_SECONDS / 3}})
                if answer.status_code < 500 or tries == 9:
                    return answer
            except requests.RequestException:
                if tries == 9:
                    raise
            time.sleep(2)


class PayingAdapter(x402HTTPAdapter, FetchAgain):
    """Retries inside the payment. Outside it, each try would sign and pay again."""


client = x402ClientSync().register("${MAIN_NETWORK}", ExactEvmScheme(payer))
session = requests.Session()
for scheme in ("https://", "http://"):
    session.mount(scheme, PayingAdapter(client))

start = session.post("${baseUrl}/test/${retry.product}/start").json()

# Two fair orders. The response to one of them is dropped after it is paid.
url = start["next"]["url"]
for order in (url, url.replace("order=1", "order=2")):
    print("paid", session.post(order).status_code)

# The result is ready ${WINDOW_SECONDS} seconds after the dropped response.
while True:
    result = requests.post("${baseUrl}/test/${retry.product}/result", json={"wallet": payer.address}).json()
    print(result)  # status "incomplete" until then, and finally "complete" with the certificate
    if result["status"] != "incomplete":
        break
    time.sleep(15)
`,
});

const { key: NETWORK_KEY, rpcVariable } = NETWORKS[MAIN_NETWORK];
const merchant = (): string => `MERCHANT_PRIVATE_KEY=0x… ${rpcVariable}=${sampleRpcUrl(MAIN_NETWORK)}`;
const SHOP = "FACILITATOR_URL=https://… PAY_TO=0x…";

const make = ({ file, text, pip, env = PAYER }: Source): Program => ({
  file,
  text,
  run: `${installed(pip)}\n${env} python ${file}`.replace("\n python", "\npython"),
});

/** Returns a program that passes the test. */
export function pythonTest(product: BehavioralProduct, baseUrl: string): Program {
  const baited = BAITED_KINDS.find((kind) => kind.product === product);
  return make(baited === undefined ? takeRetryTest(baseUrl) : takeBaitedTest(baseUrl, baited));
}

/** Each program by its name. */
export const pythonPrograms = (baseUrl: string, wallet: string) => {
  return {
    pay: make({
      file: "pay.py",
      pip: CLIENT,
      text: `${paying()}
answer = session.post("${baseUrl}/test/basic")
print(answer.json())  # cert_url, badge_url, badge_markdown, …
`,
    }),
    settled: make({
      file: "settled.py",
      pip: CLIENT,
      text: `${paying()}
signed = {}


def remember(created):
    """The response can get lost, but the payment still counts."""
    signed.update(created.payment_payload.payload["authorization"])


client.on_after_payment_creation(remember)
try:
    session.post("${baseUrl}/test/basic")
except OSError as lost:
    print(lost)

query = {"network": "${NETWORK_KEY}", "from": signed["from"], "nonce": signed["nonce"], "valid_before": signed["validBefore"]}
answer = session.get("${baseUrl}/settlement", params=query).json()
print(answer["status"], answer["final"], answer.get("transaction"))  # settled, pending, expired, canceled, replaced or used
print(answer["means"])  # whether to sign again
`,
    }),
    purchases: make({
      file: "purchases.py",
      pip: '"x402[evm,httpx,extensions]"',
      text: `import asyncio
import os

from eth_account import Account
from x402 import x402Client
from x402.extensions.sign_in_with_x import CreateSIWxClientExtensionOptions, create_siwx_client_extension
from x402.http.clients import x402HttpxClient


async def main():
    payer = Account.from_key(os.environ["PAYER_PRIVATE_KEY"])
    sign_in = create_siwx_client_extension(CreateSIWxClientExtensionOptions(signers=[payer]))
    async with x402HttpxClient(x402Client().register_extension(sign_in)) as http:
        answer = await http.get("${baseUrl}/purchases")
    purchases = answer.json()["purchases"]
    for one in purchases:
        print(one["resource"], one["amount_usd"], "USDC", one["transaction"])
    if purchases:
        print(purchases[0]["answer"]["body"])  # the newest answer, in full


asyncio.run(main())
`,
    }),
    check: make({
      file: "check.py",
      pip: wheel(baseUrl),
      env: "",
      text: `import sys
from datetime import datetime, timezone

import httpx

from agent_payment_trust import claims_of, parse_key_set, shortcomings, verify_document

service = "${baseUrl}"
wallet = "${wallet}"

# The bytes as received, because parsing hides duplicate members.
keys = parse_key_set(httpx.get(f"{service}/.well-known/jwks.json").content)
report = verify_document(httpx.get(f"{service}/credential/{wallet}").content, keys, issuer=service)
if not report.valid or report.document is None:
    sys.exit(f"not signed by {service}, or not fresh")
claims = claims_of(report.document)
missing = shortcomings(report.document, claims, ["verified"], wallet=wallet, at=datetime.now(timezone.utc))
print(missing or "verified")
`,
    }),
    fastapi: make({
      file: "gated_fastapi.py",
      pip: `fastapi uvicorn ${wheel(baseUrl, "[gate]")} "x402[evm]"`,
      env: SHOP,
      text: `import os

import uvicorn
from fastapi import FastAPI
from x402.http import FacilitatorConfig, HTTPFacilitatorClient, PaymentOption, RouteConfig
from x402.mechanisms.evm.exact.server import ExactEvmScheme
from x402.server import x402ResourceServer

from agent_payment_trust.gate.fastapi import payment_middleware

facilitator = HTTPFacilitatorClient(FacilitatorConfig(url=os.environ["FACILITATOR_URL"]))
server = x402ResourceServer(facilitator).register("${MAIN_NETWORK}", ExactEvmScheme())
price = PaymentOption(scheme="exact", price="$0.01", network="${MAIN_NETWORK}", pay_to=os.environ["PAY_TO"])

app = FastAPI()
routes = {"POST /paid/haiku": RouteConfig(accepts=price)}
app.middleware("http")(payment_middleware(routes, server, service="${baseUrl}"))


@app.post("/paid/haiku")
def haiku():
    return {"haiku": "An old silent pond"}


uvicorn.run(app, port=int(os.environ.get("PORT", "3000")))
`,
    }),
    flask: make({
      file: "gated_flask.py",
      pip: `flask ${wheel(baseUrl, "[gate]")} "x402[evm,httpx]"`,
      env: SHOP,
      text: `import os

from flask import Flask
from x402.http import FacilitatorConfig, HTTPFacilitatorClientSync, PaymentOption, RouteConfig
from x402.mechanisms.evm.exact.server import ExactEvmScheme
from x402.server import x402ResourceServerSync

from agent_payment_trust.gate.flask import payment_middleware

facilitator = HTTPFacilitatorClientSync(FacilitatorConfig(url=os.environ["FACILITATOR_URL"]))
server = x402ResourceServerSync(facilitator).register("${MAIN_NETWORK}", ExactEvmScheme())
price = PaymentOption(scheme="exact", price="$0.01", network="${MAIN_NETWORK}", pay_to=os.environ["PAY_TO"])

app = Flask(__name__)
payment_middleware(app, {"POST /paid/haiku": RouteConfig(accepts=price)}, server, service="${baseUrl}")


@app.post("/paid/haiku")
def haiku():
    return {"haiku": "An old silent pond"}


app.run(port=int(os.environ.get("PORT", "3000")))
`,
    }),
    shop: make({
      file: "shop.py",
      pip: `fastapi uvicorn ${wheel(baseUrl, "[escrow]")}`,
      env: merchant(),
      text: `import os

import uvicorn
from eth_account import Account
from fastapi import APIRouter, FastAPI

from agent_payment_trust.escrow.fastapi import escrowed

shop = APIRouter(
    route_class=escrowed(
        account=Account.from_key(os.environ["MERCHANT_PRIVATE_KEY"]),
        rpc_url=os.environ["${rpcVariable}"],
        arbiter_url="${baseUrl}",
        price="${formatUsd(DEMO_PRICE)}",
    )
)


@shop.post("/haiku")
def haiku():
    return {"haiku": "An old silent pond"}


app = FastAPI()
app.include_router(shop)
uvicorn.run(app, port=int(os.environ.get("PORT", "3000")))
`,
    }),
    shopFlask: make({
      file: "shop_flask.py",
      pip: `flask ${wheel(baseUrl, "[escrow]")}`,
      env: merchant(),
      text: `import os

from eth_account import Account
from flask import Flask

from agent_payment_trust.escrow.flask import escrowed

app = Flask(__name__)
sold = escrowed(
    account=Account.from_key(os.environ["MERCHANT_PRIVATE_KEY"]),
    rpc_url=os.environ["${rpcVariable}"],
    arbiter_url="${baseUrl}",
    price="${formatUsd(DEMO_PRICE)}",
)


@app.post("/haiku")
@sold
def haiku():
    return {"haiku": "An old silent pond"}


app.run(port=int(os.environ.get("PORT", "3000")))
`,
    }),
    buyer: make({
      file: "buyer.py",
      pip: `${wheel(baseUrl, "[escrow]")} "x402[evm,httpx]"`,
      text: `import asyncio
import os

from eth_account import Account
from x402 import x402Client
from x402.http.clients import x402HttpxClient

from agent_payment_trust.escrow import AuthCaptureEvmScheme, trusted_operators


async def main():
    payer = Account.from_key(os.environ["PAYER_PRIVATE_KEY"])
    # Only contracts that this service arbitrates may hold the money, because a merchant can name any contract.
    operators = trusted_operators("${baseUrl}")
    client = x402Client().register("${MAIN_NETWORK}", AuthCaptureEvmScheme(payer, operators=operators))
    async with x402HttpxClient(client, timeout=60) as http:
        answer = await http.post(os.environ.get("SHOP_URL", "http://localhost:3000/haiku"))
    print(answer.json(), answer.headers["x-escrow-decision"])  # release


asyncio.run(main())
`,
    }),
    exam: make({
      file: "exam.py",
      pip: CLIENT,
      env: `${PAYER} SELLER_URL=https://…`,
      text: `${paying("import time\n")}
answer = session.post("${baseUrl}/test/seller", json={"url": os.environ["SELLER_URL"]})
order = answer.json()
if not answer.ok:
    raise SystemExit(order)  # the reason; nothing was charged
while True:
    exam = session.get(order["exam_url"], headers={"accept": "application/json"}).json()
    print(exam["status"], exam.get("level"))
    if exam["status"] != "incomplete":
        break
    time.sleep(5)
print(order["cert_url"])  # the public record
`,
    }),
    verdict: make({
      file: "verdict.py",
      pip: CLIENT,
      text: `import hashlib
${paying()}
# Agreed when the deal was made: the SHA-256 of the delivery.
agreed = hashlib.sha256(b"An old silent pond").hexdigest()

answer = session.post(
    "${baseUrl}/arbiter/verify",
    json={
        "category": "payload-hash",
        "conditions": {"payload_text": "An old silent pond", "expected_sha256": agreed},
        "deal_ref": "order-4711",
    },
)
if not answer.ok:
    raise SystemExit(answer.text)  # a 422 cites the policy rule; nothing was charged
with open("verdict.json", "wb") as file:
    file.write(answer.content)
print(answer.json()["verdict"])  # release, refund or escalate
`,
    }),
    scores: make({
      file: "scores.py",
      pip: CLIENT,
      text: `${paying()}
answer = session.post("${baseUrl}/score/batch", json={"wallets": ["${wallet}", payer.address]})
if not answer.ok:
    raise SystemExit(answer.text)
for record in answer.json():
    print(record["wallet"], record["score"], record["tier"], record["flags"])
`,
    }),
  } as const satisfies Readonly<Record<string, Program>>;
};

/** The commands that install our wheel, without extras, in a virtual environment. */
export const installedWheel = (baseUrl: string): string => installed(wheel(baseUrl));
