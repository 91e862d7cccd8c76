import { pino } from "pino";
import { expect, test, vi } from "vitest";
import { connect } from "../../../api/platform/db/connection.ts";
import { createService } from "../../../api/service.ts";
import { contest, deliverWithWindow, holdWithWindow, startContestScene } from "../../support/escrow/contest.ts";
import { END_TURNS, newMerchant, PATIENT, statusOf } from "../../support/escrow/contract.ts";
import { forFile } from "../../support/for-file.ts";
import { send } from "../../support/payments/requests.ts";

vi.setConfig({ testTimeout: 180_000 });
const SELF_CONTESTS = 40;

const scene = await forFile(startContestScene());
const { service, at, site, mineAt } = scene;
const owner = await forFile(connect(service.database.ownerUrl, 1));
const pool = await forFile(connect(service.config.databaseUrl));
const log = pino({ level: "silent" });
const { escrow } = await createService(service.config, pool, { log, access: log });
const HTTP = { category: "http-delivery" };

async function sell(path: string, seconds: number) {
  const merchant = newMerchant();
  const conditions = { "http-delivery": { url: `${site.url}${path}` } };
  const held = await holdWithWindow(at.escrow, merchant, { seconds, conditions });
  const { body } = await deliverWithWindow(service, merchant, { held });
  return { ...held, until: Date.parse((body.contest as { until: string }).until) / 1000 };
}

async function settle(): Promise<void> {
  await owner.query(END_TURNS);
  await escrow.settleDue();
  await escrow.idle();
}

test("forty contests of an attacker's own at a silent site do not get a false promise paid, and do not delay its refund for long", async () => {
  const own = [];
  while (own.length < SELF_CONTESTS) own.push(await sell("/silent", 600));
  const cheated = await sell("/gone", 60);
  const flood = own.map((held) => contest(service, held, HTTP));
  const opened = async () => (await owner.query("SELECT FROM escrow_contest")).rowCount;
  await expect.poll(opened, PATIENT).toBe(SELF_CONTESTS);
  const said = contest(service, cheated, HTTP);
  await expect.poll(opened, PATIENT).toBe(SELF_CONTESTS + 1);
  await mineAt(cheated.until);
  await settle();
  expect(await statusOf(at.escrow, cheated)).toBe("held");

  expect((await said).status).toBe(200);
  while (((await send(`${service.url}/escrow/contest/${cheated.id}`)).body.answer ?? null) === null)
    await escrow.answerContests();
  await settle();
  expect(await statusOf(at.escrow, cheated)).toBe("refunded");
  await Promise.all(flood);
});
