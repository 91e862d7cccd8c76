import fc from "fast-check";
import type { Hex } from "viem";
import { expect, test } from "vitest";
import { escrowAbi } from "../../../contracts/abi.ts";
import { type PaymentInfo, payerAgnosticNonce, paymentId } from "../../../packages/escrow/src/index.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { anyTerms } from "../../support/escrow/any-terms.ts";
import { deployEscrow } from "../../support/escrow/contract.ts";
import { forFile } from "../../support/for-file.ts";

const chain = await forFile(startTestChain());
const escrow = await deployEscrow(chain);

const read = (functionName: "getHash" | "getPayerAgnosticHash", info: PaymentInfo): Promise<Hex> =>
  chain.client.readContract({ address: escrow.address, abi: escrowAbi, functionName, args: [info] });

test("The id and the nonce of any terms are the same as the contract's", async () => {
  const place = { chainId: chain.network.chainId, escrow: escrow.address };
  const check = async (info: PaymentInfo) => {
    expect(paymentId(place, info)).toBe(await read("getHash", info));
    expect(payerAgnosticNonce(place, info)).toBe(await read("getPayerAgnosticHash", info));
  };
  await fc.assert(fc.asyncProperty(anyTerms, check), { numRuns: 50 });
});
