import { encodePaymentSignatureHeader } from "@x402/core/http";
import type { PaymentPayload, PaymentRequired } from "@x402/core/types";
import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { x402Client } from "@x402/fetch";
import type { LocalAccount } from "viem";
import { describe, expect, test } from "vitest";
import { NETWORKS, type Network } from "../../../api/platform/networks.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { openOperator } from "../../support/escrow/auth-capture.ts";
import { deployEscrow } from "../../support/escrow/contract.ts";
import { forFile } from "../../support/for-file.ts";
import { type Measured, MOST_HEADER_BYTES, measured } from "../../support/nginx.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

// Stock nginx has a 4 KB buffer for response headers and returns 502 if they do not fit.

const HOST = `${"a".repeat(52)}.example`;

/** Starts the service on one network, under a 60-character host name. */
async function open(network: Network) {
  const chain = await forFile(startTestChain({ network }));
  const escrowAddresses =
    network === "eip155:8453" ? [(await deployEscrow(chain)).address, (await openOperator(chain)).address] : [];
  const config = { escrowAddresses, baseUrl: `https://${HOST}`, rateLimitPerMinute: 1_000_000 };
  const service = await forFile(startService({ chain, config }));
  const direct = `http://localhost:${service.config.port}`;
  return { network, chain, service, direct };
}

const stages = [await open("eip155:8453"), await open("eip155:84532")];
const [main] = stages as [(typeof stages)[0]];

const challengeIn = ({ headers }: Measured) =>
  JSON.parse(Buffer.from(headers.get("payment-required") ?? "", "base64").toString()) as PaymentRequired;

/** Returns every paid route of the service with its 402. */
async function unpaid({ direct, service }: typeof main) {
  const paths = service.mounted.filter(({ method }) => method === "POST").map(({ path }) => path);
  const answers = await Promise.all(
    [...new Set(paths)].map(async (path) => ({ path, answer: await measured(direct + path, { method: "POST" }) })),
  );
  return answers.filter(({ answer }) => answer.status === 402);
}

/** Returns the example body from the route's bazaar entry. */
const exampleIn = ({ extensions }: PaymentRequired): string => {
  const { bazaar } = (extensions ?? {}) as { bazaar?: { info: { input: { body: unknown } } } };
  return JSON.stringify(bazaar?.info.input.body ?? {});
};

const tooLong = (answers: readonly (readonly [name: string, Measured])[]) =>
  answers.flatMap(([name, { status, headerBytes }]) =>
    headerBytes > MOST_HEADER_BYTES ? [`${name} ${status}: ${headerBytes} bytes`] : [],
  );

test("The header block of every response to an unpaid request stays below 4,000 bytes", async () => {
  const answers = [];
  for (const { method, path } of main.service.mounted)
    for (const accept of ["application/json", "text/html"])
      answers.push([
        `${method} ${path}`,
        await measured(main.direct + path.replaceAll(/:\w+/g, "x"), { method, headers: { accept } }),
      ] as const);
  expect(answers.length).toBeGreaterThan(100);
  expect(tooLong(answers)).toEqual([]);
});

const stockClient = (payer: LocalAccount) =>
  x402Client
    .fromConfig({ schemes: [], spendControls: false })
    .register("eip155:*", new ExactEvmScheme(payer))
    .register("eip155:*", new AuthCaptureEvmScheme(payer));

const inVersion2 = (payment: PaymentPayload) => ({ "payment-signature": encodePaymentSignatureHeader(payment) });

function inVersion1({ accepted: { scheme }, payload }: PaymentPayload, id: Network) {
  const payment = { x402Version: 1, scheme, network: NETWORKS[id].key, payload };
  return { "x-payment": Buffer.from(JSON.stringify(payment)).toString("base64") };
}

describe.each(stages)("$network", (stage) => {
  test("Results and replays of every paid route fit in 4,000 header bytes in both versions", async () => {
    const answers: (readonly [string, Measured])[] = [];
    const payable = (await unpaid(stage)).map(({ path, answer }) => ({ path, challenge: challengeIn(answer) }));
    for (const { path, challenge } of payable) {
      if (challenge.accepts[0]?.network !== stage.network) continue;
      const client = stockClient(await newPayer(stage.chain));
      const body = exampleIn(challenge);
      for (const version of ["v2", "v1"]) {
        const payment = await client.createPaymentPayload(challenge);
        if (version === "v1" && payment.accepted.scheme !== "exact") continue;
        const headers = version === "v2" ? inVersion2(payment) : inVersion1(payment, stage.network);
        for (const time of ["first", "again"])
          answers.push([
            `${path} ${version} ${time}`,
            await measured(stage.direct + path, { method: "POST", headers, body }),
          ]);
      }
    }
    // Scores are not sold without an index.
    const unsold = answers.flatMap(([name, { status }]) => (status === 200 ? [] : name.split(" ").slice(0, 1)));
    expect([...new Set(unsold)]).toEqual(stage === main ? ["/score", "/score/batch", "/arbiter/verify/scored"] : []);
    expect(tooLong(answers)).toEqual([]);
  });
});

test("A 402 with a reason fits in 4,000 header bytes, with the bazaar entry or with the offers after a payment", async () => {
  const answers: (readonly [string, Measured])[] = [];
  const wrong = JSON.stringify({ wallets: Array(400).fill("x"), conditions: {} });
  for (const stage of stages) {
    const client = stockClient(await newPayer(stage.chain, 0n));
    for (const { path, answer } of await unpaid(stage)) {
      const challenge = challengeIn(answer);
      if (challenge.accepts[0]?.network !== stage.network) continue;
      const ask = (init: Parameters<typeof measured>[1]) => measured(stage.direct + path, { method: "POST", ...init });
      answers.push([`${path} wrong`, await ask({ body: wrong })]);
      const payment = await client.createPaymentPayload(challenge);
      const forged = { ...payment, payload: { ...payment.payload, signature: `0x${"11".repeat(65)}` } };
      const body = exampleIn(challenge);
      answers.push([`${path} unsigned`, await ask({ body, headers: inVersion2(forged) })]);
      answers.push([`${path} unfunded`, await ask({ body, headers: inVersion2(payment) })]);
    }
  }
  expect(tooLong(answers)).toEqual([]);
  const refused = answers.filter(([, { status }]) => status === 402);
  expect(refused.length).toBeGreaterThan(answers.length / 2);
  for (const [name, answer] of refused) {
    const { extensions } = challengeIn(answer);
    const kept = / (unsigned|unfunded)$/.test(name) && !name.startsWith("/escrow/demo") ? "offer-receipt" : "bazaar";
    expect([name, Object.keys(extensions ?? {})]).toEqual([name, expect.arrayContaining([kept])]);
    const inBody = JSON.parse(answer.text) as Pick<PaymentRequired, "extensions">;
    expect([name, { ...extensions, ...inBody.extensions }]).toEqual([
      name,
      expect.objectContaining({ "offer-receipt": expect.anything() }),
    ]);
  }
});
