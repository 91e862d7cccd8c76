import { AsyncLocalStorage } from "node:async_hooks";
import { toHex } from "viem";
import { connect } from "../../api/adapters/postgres/connection.ts";
import { createVerdictStore } from "../../api/adapters/postgres/verdict-store.ts";
import { createGuardedFetch } from "../../api/adapters/web/guarded-fetch/fetch.ts";
import { createArbiter } from "../../api/arbiter/arbiter.ts";
import { createAttestor } from "../../api/arbiter/attestation.ts";
import type { Fetcher } from "../../api/arbiter/fetcher.ts";
import { POLICY_VERSIONS } from "../../api/arbiter/policy/index.ts";
import { requestSchema } from "../../api/arbiter/request.ts";
import { NETWORKS } from "../../api/kernel/networks.ts";
import { didWeb } from "../../api/signing/did.ts";
import { createSigner } from "../../api/signing/document.ts";
import { signingKey } from "../../api/signing/keys.ts";
import type { Side, SidePlan } from "./sides.ts";

const { id: network, usdc } = NETWORKS["eip155:8453"];
const PAYER = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const PAY_TO = "0x00000000000000000000000000000000c0ffee01";

const unused = async (): Promise<never> => {
  throw new Error("no claim of this bench needs it");
};

/** The arbiter's service as the API runs it, from a claim's parsed JSON to the stored verdict. */
export async function ours(plan: SidePlan): Promise<Side & { readonly end: () => Promise<void> }> {
  const { databaseUrl, baseUrl, signingSeed, arbiterKey, origin } = plan;
  const pool = connect(databaseUrl);
  const guard = { ownHost: new URL(baseUrl).hostname, allowedOrigins: [origin] };
  const { fetcher, timed } = timing(createGuardedFetch({ ...guard, userAgent: "bench" }));
  const now = () => new Date();
  const store = createVerdictStore(pool);
  const arbiter = createArbiter({
    fetcher,
    checkRuns: { read: unused },
    transactions: { read: unused },
    policies: POLICY_VERSIONS,
    tiers: { prepare: unused, ready: unused, of: unused },
    deals: { parties: unused },
    ownWallets: [],
    store,
    signer: createSigner(await signingKey(signingSeed), didWeb(baseUrl)),
    attestor: createAttestor(arbiterKey),
    baseUrl,
    now,
  });
  const schema = requestSchema({ ...guard, ownWallets: [], policies: POLICY_VERSIONS, now });
  const signal = new AbortController().signal;
  return {
    end: () => pool.end(),
    decide: (claim, number) =>
      timed(async () => {
        const payment = { network, asset: usdc.address, payer: PAYER, nonce: toHex(number, { size: 32 }) } as const;
        const sale = {
          input: schema.parse(claim),
          payment,
          version: "v2",
          payTo: PAY_TO,
          value: 250_000n,
          validAfter: 0n,
          validBefore: 0n,
          receivedAt: now(),
          details: null,
          settlement: { transaction: payment.nonce, block: 1 },
          signal,
        } as const;
        const { complete } = await arbiter.decide(sale, "plain");
        const { body } = await store.inTurn(complete);
        return JSON.parse(Buffer.from(body).toString()).verdict;
      }),
  };
}

/** Measures how long each verdict's own fetches take. */
function timing({ attempt }: Fetcher) {
  const spent = new AsyncLocalStorage<{ ms: number }>();
  const fetcher: Fetcher = {
    async attempt(request, signal) {
      const started = performance.now();
      const fetched = await attempt(request, signal);
      const of = spent.getStore();
      if (of !== undefined) of.ms += performance.now() - started;
      return fetched;
    },
  };
  const timed = (decide: () => Promise<string>) => {
    const of = { ms: 0 };
    return spent.run(of, async () => ({ verdict: await decide(), fetchMs: of.ms }));
  };
  return { fetcher, timed };
}
