import type { Network } from "../../kernel/networks.ts";
import type { Settler } from "../../payments/exact/scheme.ts";
import type { DecoyOf, DecoySigner, DecoyStore, Received, UsdcTransfers } from "./decoy-store.ts";
import { refundNonce, refundOf } from "./refund.ts";

/** How long after its session an address is watched. */
const WATCHED_DAYS = 90;
const DAY_MS = 86_400_000;
const ZERO = "0x0000000000000000000000000000000000000000";

export interface DecoyParts {
  readonly decoys: DecoyStore;
  readonly signer: DecoySigner;
  readonly usdc: UsdcTransfers;
  readonly settler: Settler;
  readonly network: Network;
  readonly baseUrl: string;
  readonly now: () => Date;
  readonly log: { warn(facts: object, message: string): void };
}

/** Returns whatever reached a decoy: nobody should pay one, and anyone who does keeps their money. */
export function createDecoyRefunds(parts: DecoyParts) {
  const { decoys, usdc, now } = parts;
  return {
    /** Returns how many transfers were given back. */
    async giveBack(): Promise<number> {
      const watched = await decoys.recent(new Date(now().getTime() - WATCHED_DAYS * DAY_MS));
      const balances = await usdc.balancesOf(watched.map(({ address }) => address));
      let given = 0;
      for (const [index, decoy] of watched.entries())
        if ((balances[index] ?? 0n) > 0n) given += await empty(parts, decoy);
      return given;
    },
  };
}

async function empty(parts: DecoyParts, decoy: DecoyOf): Promise<number> {
  const received = await parts.usdc.receivedBy(decoy.address, decoy.fromBlock);
  const used = await parts.usdc.areUsed(
    received.map((transfer) => ({ payer: decoy.address, nonce: refundNonce(transfer) })),
  );
  const open = received.filter(({ from }, index) => !used[index] && from !== ZERO);
  for (const transfer of open) await refund(parts, decoy, transfer);
  return open.length;
}

async function refund({ signer, settler, network, baseUrl, now, log }: DecoyParts, decoy: DecoyOf, transfer: Received) {
  const authorization = refundOf(transfer, BigInt(Math.floor(now().getTime() / 1000)));
  const signature = await signer.sign(decoy.session, network, authorization);
  log.warn(
    {
      session: decoy.session,
      from: transfer.from,
      value: transfer.value.toString(),
      transaction: transfer.transaction,
    },
    "USDC reached a decoy address and will be sent back",
  );
  await settler.submit({ network, authorization, signature, resource: `${baseUrl}/test/recipient/start` });
}
