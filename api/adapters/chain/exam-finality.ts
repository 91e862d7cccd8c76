import { usdcAbi } from "../../../contracts/abi.ts";
import type { FinalView, WatchedPayment } from "../../seller-exam/payment-fate.ts";
import { EXAM_ASSET } from "../../seller-exam/products.ts";
import type { ChainReader } from "./chain-reader.ts";
import { MULTICALL3 } from "./multicall.ts";
import { discreet } from "./rpc-errors.ts";

type Signed = Pick<WatchedPayment, "payer" | "nonce">;

/** Reads which authorizations are used at a final block, from two nodes in turn. @throws Error if they disagree */
export const createFinalView = ({ client, finality }: Pick<ChainReader, "client" | "finality">) =>
  discreet(async (payments: readonly Signed[]): Promise<FinalView> => {
    const { number, time } = await finality.readTwice();
    const token = { address: EXAM_ASSET, abi: usdcAbi, functionName: "authorizationState" } as const;
    const read = async () =>
      (await client.multicall({
        allowFailure: false,
        multicallAddress: MULTICALL3,
        batchSize: 0,
        blockNumber: number,
        contracts: payments.map(({ payer, nonce }) => ({ ...token, args: [payer, nonce] }) as const) as never,
      })) as readonly boolean[];
    const [one, other] = [await read(), await read()];
    if (one.some((used, place) => used !== other[place]))
      throw new Error("two nodes disagree about which payments of exams are final");
    return { time, used: new Set(payments.flatMap(({ nonce }, place) => (one[place] ? [nonce] : []))) };
  });
