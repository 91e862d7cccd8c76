import { expect, test } from "vitest";
import { createObservations } from "../../../api/operations/observation-store.ts";
import type { ChainFacts } from "../../../api/operations/status.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { STATUS } from "../../support/browser/sample-pages.ts";
import { forFile } from "../../support/for-file.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
const [one, other] = [await forFile(connect(database.apiUrl, 2)), await forFile(connect(database.apiUrl, 2))];
const { chains, senders } = STATUS;
const FACTS: ChainFacts = { chains, senders, isFacilitatorThere: true };

test("One of many processes observes the chains, and all processes read its observation for up to a minute", async () => {
  let looks = 0;
  const look = async () => {
    looks++;
    return FACTS;
  };
  const processes = Array.from({ length: 8 }, (_, at) => createObservations(at % 2 === 0 ? one : other, look));
  const age = (seconds: number) =>
    owner.query(
      `UPDATE observation SET held_until = held_until - interval '${seconds} s', taken_at = taken_at - interval '${seconds} s'`,
    );
  const read = () => Promise.all(processes.map((one) => one.read()));
  const run = () => Promise.all(processes.map(({ job }) => job.run()));

  expect(await read()).toEqual(Array(8).fill(null));
  await run();
  await run();
  expect(looks).toBe(1);
  for (const found of await read()) expect(found).toEqual({ facts: FACTS, ageSeconds: expect.any(Number) });
  await age(5);
  await run();
  expect(looks).toBe(2);
  await age(61);
  expect(await read()).toEqual(Array(8).fill(null));
});

test("After a failed observation, another process makes the next one", async () => {
  const failing = createObservations(one, () => Promise.reject(new Error("no node")));
  const working = createObservations(other, async () => ({ ...FACTS, isFacilitatorThere: false }));
  await expect(failing.job.run()).rejects.toThrow("no node");
  await owner.query("UPDATE observation SET held_until = now()");
  await working.job.run();
  expect((await working.read())?.facts.isFacilitatorThere).toBe(false);
});
