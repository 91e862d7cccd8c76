import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { post, v2 } from "../../../test/support/payments/requests.ts";
import { binary } from "../../../test/support/service/database.ts";
import { type Attack, atMost } from "../row.ts";
import { openService } from "../service.ts";

const LEASE_SECONDS = 30;
const GIVEN_UP_AFTER = 60;

/** A process died between taking a payment in and submitting it; its client signs a new one for the same purchase. */
export const IDENTIFIER: Attack = {
  rows: [
    {
      id: "identifier",
      line: 11,
      what: "until the identifier of a crashed row is free (its lease is 30 s)",
      unit: "s",
      goal: atMost(LEASE_SECONDS + 5),
    },
  ],
  async run(ground) {
    const base = await ground.ownBase();
    const service = await openService(ground, { base, jobs: true, now: () => new Date() });
    ground.untilEnd(service.stop);
    const id = randomBytes(16).toString("hex");
    const payer = await service.newPayer(0n);
    const buy = async (signed: Awaited<ReturnType<typeof service.sign>>) =>
      post(`${service.url}/test/basic`, v2(signed, { id }));
    const first = await service.sign(payer);
    await buy(first);
    // The refused row, as it was before its refusal was written.
    await service.owner.query(
      `UPDATE payment SET state = 'received', reason = NULL, lease_token = gen_random_uuid(), lease_until = now() + interval '30 s'
       WHERE nonce = $1`,
      [binary(first.authorization.nonce)],
    );
    await base.chain.fund(payer.address, 10_000_000n);
    const second = await service.sign(payer);
    const started = performance.now();
    const passed = () => Math.round((performance.now() - started) / 1_000);
    while (passed() < GIVEN_UP_AFTER) {
      const answer = await Promise.race([buy(second), sleep(GIVEN_UP_AFTER * 1_000).then(() => ({ status: 0 }))]);
      if (answer.status === 200) return { identifier: passed() };
      await sleep(1_000);
    }
    return { identifier: `> ${GIVEN_UP_AFTER}` };
  },
};
