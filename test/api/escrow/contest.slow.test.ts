import { describe, expect, test, vi } from "vitest";
import { connect } from "../../../api/platform/db/connection.ts";
import { startHoldingNode } from "../../support/chain/nodes.ts";
import {
  type ContestableHold,
  contest,
  deliverWithWindow,
  holdWithWindow,
  startContestScene,
  untilOf,
} from "../../support/escrow/contest.ts";
import {
  deployEscrow,
  END_TURNS,
  expectOutcome,
  newMerchant,
  PATIENT,
  processOf,
  statusOf,
} from "../../support/escrow/contract.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { send } from "../../support/payments/requests.ts";
import { startApiStage } from "../../support/service/api-process.ts";

describe("flood of contests", async () => {
  vi.setConfig({ testTimeout: 180_000 });
  const SELF_CONTESTS = 40;

  const scene = await forFile(startContestScene());
  const { service, at, site, mineAt } = scene;
  const owner = await forFile(connect(service.database.ownerUrl, 1));
  const { escrow } = await processOf(service);
  const HTTP = { category: "http-delivery" };

  async function sell(path: string, seconds: number) {
    const merchant = newMerchant();
    const conditions = { "http-delivery": { url: `${site.url}${path}` } };
    const held = await holdWithWindow(at.escrow, merchant, { seconds, conditions });
    const { body } = await deliverWithWindow(service, merchant, { held });
    return { ...held, until: untilOf(body) };
  }

  async function settle(): Promise<void> {
    await owner.query(END_TURNS);
    await escrow.settleDue();
    await escrow.idle();
  }

  test("An attacker's 40 contests on a silent site never get a broken promise paid, and barely delay its refund", async () => {
    const own = [];
    while (own.length < SELF_CONTESTS) own.push(await sell("/silent", 600));
    const cheated = await sell("/gone", 60);
    const flood = own.map((held) => contest(service, held, HTTP));
    const opened = async () => (await owner.query("SELECT FROM escrow_contest")).rowCount;
    await expect.poll(opened, PATIENT).toBe(SELF_CONTESTS);
    const answer = contest(service, cheated, HTTP);
    await expect.poll(opened, PATIENT).toBe(SELF_CONTESTS + 1);
    await mineAt(cheated.until);
    await settle();
    expect(await statusOf(at.escrow, cheated)).toBe("held");

    expect((await answer).status).toBe(200);
    while (((await send(`${service.url}/escrow/contest/${cheated.id}`)).body.answer ?? null) === null)
      await escrow.answerContests();
    await settle();
    expect(await statusOf(at.escrow, cheated)).toBe("refunded");
    await Promise.all(flood);
  });
});

describe("process killed with SIGKILL", async () => {
  vi.setConfig({ testTimeout: 120_000 });

  const stage = await forFile(startApiStage());
  const { chain, owner } = stage;
  const escrow = await deployEscrow(chain);
  const scene = { chain, escrow };
  const node = await forFile(startHoldingNode(chain));
  /** The site that claims are checked against. It hangs first, and later returns 404. */
  let [requests, isHanging] = [0, true];
  const site = await forFile(
    serveHttp((_request, response) => {
      requests += 1;
      if (!isHanging) response.writeHead(404).end();
    }),
  );
  const start = () => stage.start(node, { ESCROW_ADDRESSES: escrow.address, ARBITER_ALLOWED_ORIGINS: site.url });
  let api = await start();
  const merchant = newMerchant();

  async function open(): Promise<ContestableHold> {
    const conditions = { expect: { min_bytes: 1_000 }, "http-delivery": { url: `${site.url}/gone` } };
    const held = await holdWithWindow(scene, merchant, { seconds: 300, conditions });
    expect((await deliverWithWindow(api, merchant, { held })).status).toBe(200);
    return held;
  }

  async function killAndRestart(): Promise<void> {
    await api.kill();
    await owner.query(END_TURNS);
    api = await start();
  }

  /** Makes all waiting work due until the payment has ended. */
  async function ends(held: ContestableHold, decision: "release" | "refund"): Promise<void> {
    const hurry = setInterval(() => void owner.query(END_TURNS).catch(() => undefined), 1_000);
    await expectOutcome(scene, held, decision).finally(() => clearInterval(hurry));
  }

  const EXPECT = { category: "expect" };
  const answers = async ({ id }: ContestableHold) =>
    (
      await owner.query("SELECT decision FROM escrow_contest_answer WHERE payment = $1", [
        Buffer.from(id.slice(2), "hex"),
      ])
    ).rows;

  test("If a contest is stored but still being checked, the next process answers it without waiting out its minute", async () => {
    const held = await open();
    const asked = requests;
    const cut = contest(api, held, { category: "http-delivery" }).catch(() => null);
    await expect.poll(() => requests, PATIENT).toBe(asked + 1);
    expect(await answers(held)).toEqual([]);
    isHanging = false;
    await killAndRestart();
    await cut;
    await ends(held, "refund");
    expect(await answers(held)).toEqual([{ decision: "refund" }]);
  });

  test("If the answer is stored but its refund is not broadcast, the refund is sent once", async () => {
    const held = await open();
    const trap = node.hold("eth_sendRawTransaction", held.buyer.address);
    const cut = contest(api, held, EXPECT).catch(() => null);
    await trap.reached;
    await killAndRestart();
    await cut;
    await ends(held, "refund");
    expect((await contest(api, held, EXPECT)).body).toMatchObject({ contest: { decision: "refund" } });
  });
});
