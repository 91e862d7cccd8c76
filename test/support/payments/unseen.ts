import type { LocalAccount } from "viem";
import { expect } from "vitest";
import type { BaseLike } from "../base-like/base-like.ts";
import { type Fault, refuse } from "../chain/rpc.ts";
import type { TestService } from "../service/service.ts";
import { chargedOnce } from "./on-chain.ts";
import { type Answer, post, v2 } from "./requests.ts";
import { newPayer, type Signed, signPayment } from "./signing.ts";

const withoutLogs: Fault = async (call, pass) =>
  call.method === "eth_getLogs" ? refuse(call, -32_000, "logs are away") : pass(call);

/** A payment that the chain shows and the service has not seen: its row is `settling`. */
export interface UnseenPayment {
  readonly payer: LocalAccount;
  readonly signed: Signed;
  /** Sends the same header again. */
  readonly again: () => Promise<Answer>;
}

export async function payUnseen(base: BaseLike, service: Pick<TestService, "url">): Promise<UnseenPayment> {
  const payer = await newPayer(base.chain);
  const signed = await signPayment(payer, { validBefore: base.unixNow() + 120n });
  const again = () => post(`${service.url}/test/basic`, v2(signed));
  base.become(withoutLogs);
  expect((await again()).status).toBe(503);
  base.become(null);
  await chargedOnce(base.chain, signed);
  return { payer, signed, again };
}
