import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { signingKey } from "../../api/platform/signing/keys.ts";
import { verifyDocument } from "../../packages/verifier/src/index.ts";
import { parseKeySet } from "../../packages/verifier/src/key-set.ts";
import { withClient } from "../../scripts/embedded/postgres.ts";
import { startHoldingNode } from "../support/chain/nodes.ts";
import { forFile } from "../support/for-file.ts";
import { chargedOnce, nothingCharged } from "../support/payments/on-chain.ts";
import { post, send, v2 } from "../support/payments/requests.ts";
import { newPayer, signPayment, unixNow } from "../support/payments/signing.ts";
import { startApiStage } from "../support/service/api-process.ts";

// docs/drills.md, "Rotation of every key".

const PATIENT = { timeout: 30_000, interval: 200 };
const stage = await forFile(startApiStage());
const node = await forFile(startHoldingNode(stage.chain));
const seed = (byte: number) => Buffer.alloc(32, byte);
const publicHalf = async (byte: number) => (await signingKey(seed(byte))).publicJwk.x;
/** The signing key before and after the rotation. */
const [OLD, NEW] = [1, 41];
/** Derives the log's key as the service did before `SIGNING_KEY` changes. */
const logKey = async () => {
  const { hkdfSync } = await import("node:crypto");
  return Buffer.from(hkdfSync("sha256", seed(OLD), "", "tlog-checkpoint", 32)).toString("base64url");
};

const buy = async (url: string) => {
  const signed = await signPayment(await newPayer(stage.chain));
  const answer = await post(`${url}/test/basic`, v2(signed));
  return { signed, answer };
};
const credentialOf = async (url: string, wallet: string) => (await send(`${url}/credential/${wallet}`)).text;
const keysOf = async (url: string) => parseKeySet((await send(`${url}/.well-known/jwks.json`)).text);

test("With a new signing key, documents of both keys verify during the change and afterwards", async () => {
  const BASE_URL = "http://trust.localhost";
  const before = await stage.start(node, { BASE_URL });
  const { signed, answer } = await buy(before.url);
  expect(answer.status).toBe(200);
  const wallet = signed.authorization.from;
  const old = await credentialOf(before.url, wallet);
  // First the new public half is published everywhere, and then the new key signs.
  const LOG_KEY = await logKey();
  const announced = await stage.start(node, { BASE_URL, LOG_KEY, RETIRED_SIGNING_KEYS: await publicHalf(NEW) });
  const during = await keysOf(announced.url);
  const after = await stage.start(node, {
    ...{ BASE_URL, LOG_KEY, SIGNING_KEY: seed(NEW).toString("base64url") },
    RETIRED_SIGNING_KEYS: await publicHalf(OLD),
  });
  const fresh = await credentialOf(after.url, wallet);
  const issuer = "did:web:trust.localhost";
  for (const keys of [during, await keysOf(after.url)])
    for (const document of [old, fresh])
      expect(await verifyDocument(document, { keys, issuer })).toMatchObject({ valid: true });
  // Both processes write to one log.
  await expect.poll(async () => (await send(`${after.url}/status`)).body.log, PATIENT).toMatchObject({ ok: true });
  for (const one of [before, announced, after]) await one.stop();
});

test("With a new facilitator key, payments settle from the new account, and an interrupted one is charged at most once", {
  timeout: 300_000,
}, async () => {
  const before = await stage.start(node);
  const held = await signPayment(await newPayer(stage.chain), { validBefore: unixNow() + 45n });
  const hold = node.hold("eth_sendRawTransaction", held.authorization.from);
  const answering = post(`${before.url}/test/basic`, v2(held)).catch(() => null);
  await hold.reached;
  await before.kill();
  await answering;
  hold.release();

  const key = `0x${"4d".repeat(32)}` as const;
  await stage.chain.setBalance(privateKeyToAccount(key).address, 10n ** 18n);
  const after = await stage.start(node, { FACILITATOR_PRIVATE_KEY: key });
  const { signed, answer } = await buy(after.url);
  expect(answer.status).toBe(200);
  await chargedOnce(stage.chain, signed);
  await stage.endLeases();
  // If no node received the old account's transaction, the payment ends with its window.
  const status = async () => {
    await stage.chain.mine(1);
    return (await post(`${after.url}/test/basic`, v2(held))).status;
  };
  let ended = await status();
  await expect
    .poll(
      async () => {
        ended = await status();
        return ended === 200 || ended === 402;
      },
      { timeout: 100_000, interval: 500 },
    )
    .toBe(true);
  if (ended === 200) await chargedOnce(stage.chain, held);
  else await nothingCharged(stage.chain, held.authorization.from);
  await after.stop();
});

test("With a new database password, open connections continue, and a new process uses the new password", async () => {
  const role = "rotated";
  const url = new URL(stage.database.apiUrl);
  const urlWith = (password: string) => Object.assign(new URL(url), { username: role, password }).href;
  await withClient(stage.database.ownerUrl, (client) =>
    client.query(`CREATE ROLE ${role} LOGIN PASSWORD 'first' IN ROLE trust_api`),
  );
  const before = await stage.start(node, { DATABASE_URL: urlWith("first") });
  expect((await buy(before.url)).answer.status).toBe(200);
  await withClient(stage.database.ownerUrl, (client) => client.query(`ALTER ROLE ${role} PASSWORD 'second'`));
  const after = await stage.start(node, { DATABASE_URL: urlWith("second") });
  expect((await buy(after.url)).answer.status).toBe(200);
  await before.stop();
  await expect(stage.start(node, { DATABASE_URL: urlWith("first") })).rejects.toThrow(/password authentication failed/);
  await after.stop();
});
