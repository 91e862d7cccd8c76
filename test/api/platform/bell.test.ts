import { expect, test } from "vitest";
import { createWakeUp } from "../../../api/platform/jobs/wake-up.ts";

/** Everything that can happen without a timer has happened. */
const turns = () => new Promise((done) => setImmediate(done));
const AN_HOUR = 3_600_000;

test("a pause ends when it has rung, and not before", async () => {
  const bell = createWakeUp();
  let isOver = false;
  const pause = bell.wait(AN_HOUR).then(() => {
    isOver = true;
  });
  await turns();
  expect(isOver).toBe(false);
  bell.ring();
  await pause;
});

test("what rang while nobody paused ends the next pause, and only that one", async () => {
  const bell = createWakeUp();
  bell.ring();
  bell.ring();
  await bell.wait(AN_HOUR);
  let isOver = false;
  const pause = bell.wait(AN_HOUR).then(() => {
    isOver = true;
  });
  await turns();
  expect(isOver).toBe(false);
  bell.ring();
  await pause;
});

test("without a ring a pause ends by itself", async () => {
  await createWakeUp().wait(1);
});
