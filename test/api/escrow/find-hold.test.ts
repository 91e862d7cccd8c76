import { expect, test } from "vitest";
import type { Forward } from "../../../api/escrow/delivery.ts";
import { holdsNamed } from "../../../api/escrow/find-hold.ts";
import type { Hold } from "../../../api/escrow/payment.ts";
import type { EscrowContract } from "../../../api/payments/schemes/escrowed.ts";

const CONTRACT = { address: "0xe1", arbiter: "0xa1" } as unknown as EscrowContract;
const RETIRED = { address: "0xe2", arbiter: "0xa2" } as unknown as EscrowContract;
const holdOf = (id: Hold["id"], contract = CONTRACT) => ({ id, contract: contract.address }) as unknown as Hold;
const [FIRST, SECOND, ELSEWHERE, OLD] = [holdOf("0x01"), holdOf("0x02"), holdOf("0x03"), holdOf("0x04", RETIRED)];

/** A chain on which one transaction made all holds but one. */
const chain = {
  holdById: async (id: Hold["id"]) => [FIRST, SECOND, ELSEWHERE, OLD].find((hold) => hold.id === id) ?? null,
  holdsByTransaction: async (transaction: string) => (transaction === "0xaa" ? [FIRST, OLD, SECOND] : []),
  isSigned: () => Promise.reject(new Error("nobody asks who signed")),
};

const named = (forward: Partial<Forward>) => holdsNamed({ contracts: [CONTRACT, RETIRED], chain }, forward as Forward);

test("a transaction names all its holds but those that another arbiter decides", async () => {
  expect(await named({ transaction: "0xaa" })).toEqual([FIRST, SECOND]);
  expect(await named({ transaction: "0xbb" })).toEqual([]);
  expect(await named({ payment_id: "0x03" })).toEqual([ELSEWHERE]);
  expect(await named({ payment_id: "0x04" })).toEqual([]);
  expect(await named({ payment_id: "0x05" })).toEqual([]);
});
