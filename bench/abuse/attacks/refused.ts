import { randomBytes } from "node:crypto";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { tableBytes } from "../../../test/support/service/table-size.ts";
import type { Ground } from "../ground.ts";
import { type Attack, atMost, oneOf } from "../row.ts";
import { openService, type Service } from "../service.ts";

const STRANGERS = 600;
const TOGETHER = 12;
const BODY_BYTES = 45_000;

/** Requests signed by keys that own nothing, with the largest bodies that compression does not shrink. */
export const REFUSED: Attack = {
  rows: [
    { id: "refused-bytes", line: 4, what: "bytes that a refused request leaves", goal: atMost(1_024) },
    {
      id: "refused-pruned",
      line: 4,
      what: "bytes of its row once its window is over and it was pruned",
      goal: oneOf(0),
    },
  ],
  async run(ground) {
    const service = await openService(ground);
    try {
      const before = await bytes(service);
      for (let done = 0; done < STRANGERS; done += TOGETHER)
        await Promise.all(Array.from({ length: TOGETHER }, () => beRefused(service)));
      const each = ((await bytes(service)) - before) / STRANGERS;
      await service.owner.query("UPDATE payment SET valid_before = valid_before - 3 * 86400");
      await service.age(3 * 86_400);
      while ((await service.jobs.journal.prune()) > 0);
      await service.owner.query("VACUUM payment");
      const { rows } = await service.owner.query<{ bytes: string }>(
        "SELECT pg_relation_size('payment') + coalesce(pg_relation_size(reltoastrelid), 0) AS bytes FROM pg_class WHERE oid = 'payment'::regclass",
      );
      return {
        "refused-bytes": Math.round(each),
        "refused-pruned": Math.round(Number(rows[0]?.bytes) / STRANGERS),
      };
    } finally {
      await service.stop();
    }
  },
};

const bytes = ({ owner }: Service): Promise<number> => tableBytes(owner, "payment");

async function beRefused(service: Service): Promise<void> {
  const signed = await service.sign(privateKeyToAccount(generatePrivateKey()));
  const { status, text } = await service.pay(
    signed,
    "/test/basic",
    JSON.stringify(randomBytes(BODY_BYTES).toString("base64")),
  );
  if (status !== 402) throw new Error(`a payer without USDC got ${status}: ${text.slice(0, 200)}`);
}

/** From the longest down: what `validBefore` may be. */
const WINDOWS: readonly (readonly [string, (now: bigint) => bigint])[] = [
  ["forever", () => 2n ** 256n - 1n],
  ["10 years", (now) => now + 10n * 365n * 86_400n],
  ["30 days", (now) => now + 30n * 86_400n],
  ["25 hours", (now) => now + 25n * 3_600n],
  ["24 hours", (now) => now + 24n * 3_600n - 60n],
  ["1 hour", (now) => now + 3_600n],
];

export const WINDOW: Attack = {
  rows: [{ id: "window", line: 5, what: "longest validBefore that is accepted", goal: oneOf("24 hours", "1 hour") }],
  async run(ground: Ground) {
    const service = await openService(ground);
    try {
      for (const [name, until] of WINDOWS) {
        const signed = await service.sign(await service.newPayer(), { validBefore: until(ground.base.unixNow()) });
        if ((await service.pay(signed)).status === 200) return { window: name };
      }
      return { window: "none" };
    } finally {
      await service.stop();
    }
  },
};
