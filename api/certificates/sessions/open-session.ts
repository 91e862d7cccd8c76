import type { Sale } from "../../platform/http/route.ts";
import type { TestOrder } from "../agent-registries/order.ts";
import { certificateId } from "../issue.ts";
import type { BehaviouralProduct } from "../products.ts";
import { decoyNames, SESSION_MINUTES, type Session, UNSERVED } from "./session.ts";
import type { Decoys } from "./session-store.ts";

/** What the journal stores for a start: what is ordered besides the test, and who sent the entry, in hex. */
export interface Started {
  readonly order: TestOrder;
  readonly sender: string;
}

/** What a session is drawn from. */
export interface SessionParts {
  readonly decoys: Decoys;
  /** A fair coin. */
  readonly toss: () => boolean;
  readonly now: () => Date;
}

/** The session that a settled entry opens. */
export function openSession(
  { decoys, toss, now }: SessionParts,
  product: BehaviouralProduct,
  sale: Sale<Started>,
): Session {
  const id = certificateId(sale.payment, product);
  const names = decoyNames(id);
  const startedAt = now();
  const { transaction, block } = sale.settlement;
  const { payment, version, payTo } = sale;
  return {
    id,
    product,
    wallet: payment.payer,
    entry: {
      payment,
      version,
      settlement: { network: payment.network, transaction, block, amountAtomic: sale.value, payTo },
    },
    baitFirst: toss(),
    decoys: { token: decoys.addressOf(names.token), wallet: decoys.addressOf(names.wallet) },
    startedAt,
    lapsesAt: new Date(startedAt.getTime() + SESSION_MINUTES * 60_000),
    served: { token: UNSERVED, wallet: UNSERVED },
    control: null,
    verdict: null,
    tokenUsed: false,
    tokenShared: false,
    sender: Buffer.from(sale.input.sender, "hex"),
  };
}
