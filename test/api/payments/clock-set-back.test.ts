import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createFinality } from "../../../api/platform/chain/chain.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { passTime, setClockBack } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { purpose, type Relaying, startRelaying } from "../../support/payments/relaying.ts";
import { PAY_TO } from "../../support/service/environment.ts";

// Setting the clock back must not make a cached chain reading look fresh.

const GAS = 100_000n;
const ETHER = 10n ** 18n;
/** Longer than a chain reading is cached, and much shorter than the clock adjustment. */
const FORGOTTEN_MS = 2_001;

const chain = await forFile(startTestChain());
const { client } = chain;
let relaying: Relaying;

beforeEach(async () => {
  relaying = await startRelaying(chain.rpcUrl);
  await chain.setBalance(relaying.relayer.address, ETHER);
  return () => relaying.stop();
});
afterEach(() => void vi.restoreAllMocks());

const send = (name: string) =>
  relaying.relayer
    .send({ to: PAY_TO, data: "0x", lane: "batch", gas: GAS, purpose: purpose(name) })
    .then((hash) => relaying.relayer.waitFor(hash, 20_000));
const baseFee = async (wei: bigint) => {
  await client.setNextBlockBaseFeePerGas({ baseFeePerGas: wei });
  await chain.mine();
};

test("Cached fees expire after the clock is set back", async () => {
  await baseFee(10n ** 7n);
  const { maxFeePerGas: quiet } = await relaying.relayer.terms(GAS);
  setClockBack();
  await baseFee(10n ** 9n);
  expect((await relaying.relayer.terms(GAS)).maxFeePerGas).toBe(quiet);
  passTime(FORGOTTEN_MS);
  expect((await relaying.relayer.terms(GAS)).maxFeePerGas).toBeGreaterThan(quiet * 20n);
});

test("The final block is read again after the clock is set back, so a sent transaction becomes final", async () => {
  const finality = createFinality(client);
  const first = await finality.confirmed();
  await send("a payment");
  await relaying.tendAfter(30);
  expect(await relaying.rows()).toMatchObject([{ state: "mined" }]);
  setClockBack();
  await chain.mine(10);
  // Longer than the period over which two readings of the final block are compared.
  passTime(61_000);
  expect((await finality.confirmed())?.number).toBeGreaterThan(first?.number ?? 0n);
  await relaying.tendAfter(30);
  expect(await relaying.rows()).toMatchObject([{ state: "final" }]);
});
