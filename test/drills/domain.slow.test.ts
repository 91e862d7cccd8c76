import { request } from "undici";
import { expect, test } from "vitest";
import { verifyDocument } from "../../packages/verifier/src/index.ts";
import { parseKeySet } from "../../packages/verifier/src/key-set.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { forFile } from "../support/for-file.ts";
import { post, send, v2 } from "../support/payments/requests.ts";
import { newPayer, signPayment } from "../support/payments/signing.ts";
import { startService } from "../support/service/service.ts";

// docs/drills.md, "A domain that changes".

const OLD = "old.example";
const chain = await forFile(startTestChain());

/** Requests the URL as forwarded by a proxy that serves both hosts. */
async function under(host: string, url: string): Promise<Record<string, unknown>> {
  const { body, statusCode } = await request(url, { headers: { host } });
  expect(statusCode).toBe(200);
  return (await body.json()) as Record<string, unknown>;
}

test("A document signed under the former host still verifies there, with its key set and DID document", async () => {
  const before = await startService({ chain, jobs: false, config: { baseUrl: `https://${OLD}` } });
  const local = `http://localhost:${before.config.port}`;
  const signed = await signPayment(await newPayer(chain));
  const bought = await post(`${local}/test/basic`, v2(signed));
  const path = `/credential/${signed.authorization.from}`;
  expect(bought.status).toBe(200);
  const old = (await send(local + path)).text;
  expect(JSON.parse(old)).toMatchObject({ issuer: `did:web:${OLD}` });
  const { database, config } = before;
  await before.stop();

  const { signingKey } = config;
  const moved = { signingKey, baseUrl: "https://new.example", formerHosts: [OLD] };
  const after = await forFile(startService({ chain, database, jobs: false, config: moved }));
  const url = `http://localhost:${after.config.port}/.well-known`;
  const keys = await parseKeySet(JSON.stringify(await under(OLD, `${url}/jwks.json`)));
  expect(await verifyDocument(old, { keys, issuer: `https://${OLD}` })).toMatchObject({ valid: true });
  expect(await verifyDocument(old, { keys, issuer: "https://new.example" })).toMatchObject({
    valid: false,
    signature: { code: "issuer_mismatch" },
  });

  const [former, current] = [await under(OLD, `${url}/did.json`), await under("new.example", `${url}/did.json`)];
  const { proof } = JSON.parse(old) as { proof: { verificationMethod: string } };
  expect(former).toMatchObject({
    id: `did:web:${OLD}`,
    alsoKnownAs: ["did:web:new.example"],
    assertionMethod: expect.arrayContaining([proof.verificationMethod]),
  });
  expect(current).toMatchObject({ id: "did:web:new.example", alsoKnownAs: [`did:web:${OLD}`] });
  // An unknown host gets the current identifier, because published addresses never come from a request.
  expect(await under("stranger.example", `${url}/did.json`)).toEqual(current);
  const again = (await send(`http://localhost:${after.config.port}${path}`)).text;
  expect(JSON.parse(again)).toMatchObject({ issuer: "did:web:new.example" });
  expect(await verifyDocument(again, { keys, issuer: "https://new.example" })).toMatchObject({ valid: true });
});
