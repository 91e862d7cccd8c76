import { pino } from "pino";
import { expect, test } from "vitest";
import { connect } from "../../../api/platform/db/connection.ts";
import { createService } from "../../../api/service.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import {
  askedOnChain,
  deployEscrow,
  END_TURNS,
  hold,
  newMerchant,
  PATIENT,
  statusOf,
} from "../../support/escrow/contract.ts";
import { deliver, GOOD } from "../../support/escrow/delivery.ts";
import { forFile } from "../../support/for-file.ts";
import { startService } from "../../support/service/service.ts";

const NO_RECORD = `0x${"00".repeat(32)}`;
const MINUTES = 60;

const chain = await forFile(startTestChain());
const escrow = await deployEscrow(chain);
const scene = { chain, escrow };
const service = await forFile(startService({ chain, jobs: false, config: { escrowAddresses: [escrow.address] } }));
const pool = await forFile(connect(service.config.databaseUrl));
const log = pino({ level: "silent" });
// The jobs of the same installation, so that the test says when they run.
const jobs = (await createService(service.config, pool, { log, access: log })).escrow;

async function carried(): Promise<void> {
  await pool.query(END_TURNS);
  await jobs.settleDue();
  await jobs.idle();
}

test("a release that is too late for its authorization becomes the clock's refund, once that is possible", async () => {
  const merchant = newMerchant();
  const { timestamp } = await chain.client.getBlock();
  const held = await hold(scene, merchant.address, { authorizationExpiry: Number(timestamp) + 20 * MINUTES });
  expect((await deliver(service, merchant, { ...held, ...GOOD })).body.decision).toBe("release");
  await chain.increaseTime(20 * MINUTES);
  await carried();
  expect([await statusOf(scene, held), await askedOnChain(scene, held)]).toEqual(["held", []]);
  await chain.increaseTime(10 * MINUTES);
  const status = async () => {
    await carried();
    return statusOf(scene, held);
  };
  await expect.poll(status, PATIENT).toBe("refunded");
  expect(await askedOnChain(scene, held)).toMatchObject([
    { decision: "refund", succeeded: true, event: { record: NO_RECORD } },
  ]);
});
