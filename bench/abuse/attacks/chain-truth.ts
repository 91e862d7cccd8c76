import { padHex } from "viem";
import type { BaseLike } from "../../../test/support/base-like/base-like.ts";
import { refuse, replyTo } from "../../../test/support/chain/rpc.ts";
import { type Attack, oneOf } from "../row.ts";
import { openService } from "../service.ts";

const RETRIES = 4;
const AUTHORIZATION_USED = "98de503528ee59b575ef0c0a2576a82497bfc029";

/** Two nodes answer: one of them does not have the block of the payment. */
function splitLogs(base: BaseLike, nonce: string): void {
  let asked = 0;
  base.become(async (call, pass) => {
    if (call.method !== "eth_getLogs") return pass(call);
    const topics = JSON.stringify(call.params);
    const isAboutNonce = topics.includes(AUTHORIZATION_USED) && topics.includes(nonce.slice(2));
    // The first about the nonce is answered well, every other one as if nothing had been there.
    return isAboutNonce && asked++ % 2 === 0 ? pass(call) : replyTo(call, []);
  });
}

/** A payment that settled and is final, whose two events come from two nodes. */
export const BURNT: Attack = {
  rows: [
    {
      id: "burnt",
      line: 9,
      what: "a paid authorization declared burnt for good when getLogs are split",
      goal: oneOf("no"),
    },
  ],
  async run(ground) {
    const { base } = ground;
    const service = await openService(ground);
    try {
      const signed = await service.sign(await service.newPayer());
      base.become(async (call, pass) =>
        call.method === "eth_getLogs" ? refuse(call, -32_000, "logs are away") : pass(call),
      );
      await service.pay(signed);
      base.become(null);
      await base.pass(16);
      splitLogs(base, padHex(signed.authorization.nonce, { size: 32 }));
      for (let retry = 0; retry < RETRIES; retry++) await service.pay(signed);
      base.become(null);
      const { status } = await service.pay(signed);
      return { burnt: status === 200 ? "no" : status === 402 ? "yes" : `answered ${status}` };
    } finally {
      base.become(null);
      await service.stop();
    }
  },
};

/** The journal is restored from before a payment whose window is over by now; its client sends the header again. */
export const RESTORED: Attack = {
  rows: [{ id: "restored", line: 10, what: "charged twice after a restore that lost the row", goal: oneOf("no") }],
  async run(ground) {
    const lost = await openService(ground);
    const signed = await lost.sign(await lost.newPayer(), { validBefore: ground.base.unixNow() + 180n });
    const bought = await lost.pay(signed);
    await lost.stop();
    if (bought.status !== 200) throw new Error(`the payment got ${bought.status}: ${bought.text.slice(0, 200)}`);
    await ground.base.pass(20);
    const restored = await openService(ground, { env: lost.env });
    try {
      let answer = await restored.pay(signed);
      for (let retry = 0; answer.status === 503 && retry < RETRIES * 5; retry++) answer = await restored.pay(signed);
      return { restored: answer.status === 200 ? "no" : answer.status === 402 ? "yes" : `answered ${answer.status}` };
    } finally {
      await restored.stop();
    }
  },
};
