import { createPublicClient, http } from "viem";
import { type Batching, type BatchPolicy, createBatching } from "../../../api/payments/settle/batching-chain.ts";
import type { Payment } from "../../../api/payments/settle/facilitator-chain.ts";
import { transfersTo } from "../../../api/payments/settle/transfer.ts";
import { authorizationDigest } from "../../../api/platform/chain/authorization.ts";
import type { SentBatch } from "../../../api/platform/metrics/meter.ts";
import type { Relayer } from "../../../api/platform/relayer/relayer.ts";
import { PAY_TO } from "../service/accounts.ts";
import { BASE, type Signed } from "./signing.ts";

interface Plan {
  readonly rpcUrl: string;
  readonly relayer: Relayer;
  readonly policy?: Partial<BatchPolicy>;
}

/** What a process settles its payments with. */
export interface Settling {
  readonly batching: Batching;
  /** What it has told the operator: batches that set out, and whether there may be any. */
  readonly sent: readonly SentBatch[];
  readonly isOn: readonly boolean[];
}

/** A full batch goes at once, and one that is not full does not go while another is under way. */
export function startBatching({ rpcUrl, relayer, policy }: Plan): Settling {
  const sent: SentBatch[] = [];
  const isOn: boolean[] = [];
  const batching = createBatching({
    client: createPublicClient({ transport: http(rpcUrl, { retryCount: 0 }), cacheTime: 0 }),
    network: BASE,
    relayer,
    sharing: transfersTo({ usdc: BASE.usdc.address, payTo: PAY_TO }),
    policy: { most: 50, waitMs: 60_000, ...policy },
    log: { warn: () => undefined },
    meter: {
      batch: (_, batch) => void sent.push(batch),
      turnedAway: () => undefined,
      batching: (_, on) => void isOn.push(on),
    },
  });
  return { batching, sent, isOn };
}

/** A payment as the gate submits it. */
export const paymentOf = (transfer: Signed): Payment => ({
  transfer,
  purpose: authorizationDigest(transfer.authorization, BASE),
});
