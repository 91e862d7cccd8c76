import type { FinalView, WatchedPayment } from "./payment-fate.ts";
import { EXAM_ASSET } from "./products.ts";
import type { ChainReader } from "../platform/chain/chain-reader.ts";
import { readAtBlock } from "../platform/chain/read-at-block.ts";
import { discreet } from "../platform/chain/rpc-errors.ts";
import { usdcCalls } from "../platform/chain/usdc-calls.ts";

type Signed = Pick<WatchedPayment, "payer" | "nonce">;

/** Reads which authorizations are used at a final block, from two nodes in turn. @throws Error if they disagree */
export const createFinalView = ({ client, finality }: Pick<ChainReader, "client" | "finality">) =>
  discreet(async (payments: readonly Signed[]): Promise<FinalView> => {
    const { number, time } = await finality.readTwice();
    const calls = payments.map(({ payer, nonce }) => usdcCalls(EXAM_ASSET).isUsed(payer, nonce));
    const read = async () => calls.map((await readAtBlock(client, { calls, blockNumber: number })).of);
    const [one, other] = [await read(), await read()];
    if (one.some((used, place) => used !== other[place]))
      throw new Error("two nodes disagree about which payments of exams are final");
    return { time, used: new Set(payments.flatMap(({ nonce }, place) => (one[place] ? [nonce] : []))) };
  });
