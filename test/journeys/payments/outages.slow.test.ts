import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { LocalAccount } from "viem";
import { beforeEach, expect, test } from "vitest";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { expectNoSignatureAnywhere, expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { ALONE, startService } from "../../support/service/service.ts";

let payer: LocalAccount;
/** What the node in front of the chain refuses at the moment. */
const broken = new Set<string>();
const basic = () => `${service.url}/test/basic`;

const chain = await forFile(startTestChain());
const node = await forFile(
  serveHttp((incoming, outgoing) => {
    forward(incoming).then(
      ({ status, body }) => outgoing.writeHead(status, { "content-type": "application/json" }).end(body),
      () => outgoing.destroy(),
    );
  }),
);
const rpcUrls = eachNetwork(() => node.url);
const service = await forFile(startService({ chain, config: { ...ALONE, rpcUrls } }));

beforeEach(async () => {
  payer = await newPayer(chain);
});

/** A node that answers some methods with an error, in which it repeats what it was asked. */
async function forward(incoming: IncomingMessage): Promise<{ status: number; body: string }> {
  const asked = await text(incoming);
  const calls = [JSON.parse(asked)].flat() as { method: string }[];
  if (calls.some(({ method }) => broken.has(method))) return { status: 503, body: JSON.stringify({ error: asked }) };
  const headers = { "content-type": "application/json" };
  const response = await fetch(chain.rpcUrl, { method: "POST", headers, body: asked });
  return { status: response.status, body: await response.text() };
}

async function whileBroken<T>(methods: readonly string[], work: () => Promise<T>): Promise<T> {
  for (const method of methods) broken.add(method);
  try {
    return await work();
  } finally {
    broken.clear();
  }
}

function expectToWait(answer: Answer): void {
  expectProblem(answer, 503, "payment_pending");
  expect(answer.body.detail).toMatch(/Do not sign again; send the same header again/);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
}

test("while the chain cannot be read nothing is submitted: 503, and the same header is taken afterwards", async () => {
  const signed = await signPayment(payer);
  for (const method of ["eth_getBlockByNumber", "eth_call"])
    expectToWait(await whileBroken([method], () => post(basic(), v2(signed))));
  await nothingCharged(chain, payer);
  expect((await post(basic(), v2(signed))).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("a settlement whose broadcast failed is broadcast again, while the client waits for its answer", async () => {
  const signed = await signPayment(payer);
  const { waiting } = await whileBroken(["eth_sendRawTransaction"], async () => {
    const waiting = post(basic(), v2(signed));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    return { waiting };
  });
  await nothingCharged(chain, payer);
  await cannotBeSubmitted();
  expect((await waiting).status).toBe(200);
  await chargedOnce(chain, signed);
});

/** Another payment, while the first one waits: what did not leave us is not charged, and submitted when it is sent again. */
async function cannotBeSubmitted(): Promise<void> {
  const signed = await signPayment(await newPayer(chain));
  expectToWait(await whileBroken(["eth_estimateGas"], () => post(basic(), v2(signed))));
  await nothingCharged(chain, signed.authorization.from);
  expect((await post(basic(), v2(signed))).status).toBe(200);
  await chargedOnce(chain, signed);
}

test("what settled while we could not look is answered when it is sent again, without a second charge", async () => {
  const signed = await signPayment(payer);
  expectToWait(await whileBroken(["eth_getLogs"], () => post(basic(), v2(signed))));
  await chargedOnce(chain, signed);
  expect((await post(basic(), v2(signed))).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("a settlement that is stuck because the market asks more is replaced, and the client that waits is answered", async () => {
  const signed = await signPayment(payer);
  await chain.client.setAutomine(false);
  const waiting = post(basic(), v2(signed));
  await withClient(service.database.ownerUrl, async (database) => {
    const open = async () =>
      (await database.query<{ hashes: Buffer[] }>("SELECT hashes FROM relay ORDER BY id DESC LIMIT 1")).rows[0]
        ?.hashes ?? [];
    const pending = async () => (await chain.client.getTxpoolStatus()).pending;
    await expect.poll(pending, { timeout: 30_000 }).toBe(1);
    const [first] = await open();
    const stuck = await offerOf(first);
    await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: (stuck?.maxFee ?? 0n) * 2n });
    await chain.mine();
    await expect.poll(open, { timeout: 30_000 }).toHaveLength(2);
    await expect.poll(() => offerOf(first), { timeout: 30_000 }).toBeNull();
    const [, second] = await open();
    await expect.poll(() => offerOf(second), { timeout: 30_000 }).not.toBeNull();
    const replacement = await offerOf(second);
    expect(replacement).toMatchObject({ nonce: stuck?.nonce, to: stuck?.to, input: stuck?.input });
    // Nodes ask for a tenth more of both before they replace a transaction.
    expect(replacement?.maxFee).toBeGreaterThan(((stuck?.maxFee ?? 0n) * 11n) / 10n);
    expect(replacement?.tip).toBeGreaterThan(((stuck?.tip ?? 0n) * 11n) / 10n);
  });
  await chain.client.setAutomine(true);
  await chain.mine();
  expect((await waiting).status).toBe(200);
  await chargedOnce(chain, signed);
});

/** A transaction as the node has it; null when it does not. */
const offerOf = (hash: Buffer | undefined) =>
  chain.client.getTransaction({ hash: `0x${hash?.toString("hex")}` }).then(
    ({ nonce, to, input, maxFeePerGas, maxPriorityFeePerGas }) => ({
      ...{ nonce, to, input },
      maxFee: maxFeePerGas ?? 0n,
      tip: maxPriorityFeePerGas ?? 0n,
    }),
    () => null,
  );

test("no answer, log line or row of the database holds a signature in clear", async () => {
  expect(service.logged.filter((line) => line.includes('"level":40')).length).toBeGreaterThan(3);
  await expectNoSignatureAnywhere(service);
});
