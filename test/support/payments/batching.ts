import { createPublicClient, http } from "viem";
import { type Batching, type BatchPolicy, createBatching } from "../../../api/adapters/chain/batching.ts";
import type { Relayer } from "../../../api/adapters/chain/relayer/relayer.ts";
import type { Payment } from "../../../api/adapters/chain/settle-alone.ts";
import { authorizationDigest } from "../../../api/payments/exact/authorization.ts";
import { PAY_TO } from "../service/accounts.ts";
import { BASE, type Signed } from "./signing.ts";

interface Plan {
  readonly rpcUrl: string;
  readonly relayer: Relayer;
  readonly policy?: Partial<BatchPolicy>;
}

/** What a process settles its payments with. A full batch goes at once, and none goes for the time that it waited. */
export const startBatching = ({ rpcUrl, relayer, policy }: Plan): Batching =>
  createBatching({
    client: createPublicClient({ transport: http(rpcUrl, { retryCount: 0 }), cacheTime: 0 }),
    network: BASE,
    relayer,
    payTo: PAY_TO,
    policy: { most: 50, waitMs: 60_000, unmined: 8, ...policy },
    log: { warn: () => undefined },
    meter: null,
  });

/** A payment as the gate submits it. */
export const paymentOf = (transfer: Signed): Payment => ({
  transfer,
  purpose: authorizationDigest(transfer.authorization, BASE),
});
