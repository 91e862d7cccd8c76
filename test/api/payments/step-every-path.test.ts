import { describe, expect, test } from "vitest";
import { START, step } from "../../../api/payments/step.ts";
import type { Command, Run, StepEvent } from "../../../api/payments/step-types.ts";
import {
  ALREADY_PAID,
  BARRED,
  BURNT,
  COMPLETED,
  CROWDED,
  chain,
  DONE,
  EXPIRED,
  FINAL,
  HANDLE_FAILED,
  HANDLED,
  LOST,
  NOT_AT_ONCE,
  OK,
  PAID,
  REFUSED,
  REVERTED,
  request,
  resolve,
  row,
  SPENT,
  SUBMITTED,
  UNACKNOWLEDGED,
  UNAVAILABLE,
  UNUSED,
} from "./machine.ts";

const VIEWS = [PAID, FINAL, UNUSED, REVERTED, SPENT, EXPIRED, BURNT];

/** Every outcome that the shell can report of a command. */
function outcomesOf(command: Exclude<Command, { type: "answer" }>): readonly StepEvent[] {
  switch (command.type) {
    case "preflight":
      return [OK, ALREADY_PAID, REFUSED, UNAVAILABLE];
    case "look":
      return [UNAVAILABLE, ...VIEWS.flatMap((view) => [chain(view), chain(view, false)])];
    case "submit":
      return [SUBMITTED];
    case "handle":
      return [HANDLED, HANDLE_FAILED, ...(command.noted ? [] : [NOT_AT_ONCE])];
    case "complete":
      return [COMPLETED, LOST, UNACKNOWLEDGED, HANDLE_FAILED];
    case "insert":
    case "take":
      return [DONE, LOST, CROWDED, BARRED, UNACKNOWLEDGED];
    default:
      return [DONE, LOST, UNACKNOWLEDGED];
  }
}

type Path = readonly { readonly event: StepEvent; readonly command: Command }[];

/** Every way that a run can go until its answer. */
function paths(first: StepEvent): Path[] {
  const whole: Path[] = [];
  const explore = (run: Run, event: StepEvent, before: Path): void => {
    const { run: next, command } = step(run, event);
    const path = [...before, { event, command }];
    if (command.type === "answer") return void whole.push(path);
    if (path.length > 16) throw new Error("a run does not end");
    for (const outcome of outcomesOf(command)) explore(next, outcome, path);
  };
  explore(START, first, []);
  return whole;
}

describe("whatever happens", () => {
  const known = (["received", "settling", "settled", "fulfilled", "void"] as const).map((state) => row(state));
  const requests = [paths(request()), ...known.map((one) => paths(request({ row: one })))].flat();
  const jobs = known.flatMap((one) => paths(resolve(one)));
  const all = [...requests, ...jobs];
  const commandsOf = (path: Path) => path.map(({ command }) => command);
  const acknowledged = (path: Path, index: number) => {
    const next = path[index + 1]?.event;
    return next?.type === "completed" || (next?.type === "written" && next.rows === 1);
  };

  test("a signature leaves only from a row that is known to be settling or fulfilled", () => {
    for (const path of all) {
      const at = commandsOf(path).findIndex((command) => command.type === "submit");
      const marked = commandsOf(path).some((command, index) => {
        const known = command.type === "take" && (command.seen === "settling" || command.seen === "fulfilled");
        return (
          index < at && (known || (command.type === "write" && command.to === "settling")) && acknowledged(path, index)
        );
      });
      expect(at < 0 || marked, JSON.stringify(commandsOf(path))).toBe(true);
    }
  });

  test("402 is never answered after a submission, unless it is dead at a final block or was mined without settling", () => {
    for (const path of requests) {
      const commands = commandsOf(path);
      const last = commands.at(-1);
      const refused = last?.type === "answer" && last.answer.type === "pay";
      const left = commands.some(({ type: what }) => what === "submit");
      const over = path.some(
        ({ event }) => event.type === "chain" && (event.view.nonce === "dead" || event.view.nonce === "reverted"),
      );
      expect(refused && left && !over, JSON.stringify(commands)).toBe(false);
    }
  });

  test("nothing is submitted after a look showed that it was mined without settling", () => {
    for (const path of all) {
      const seen = path.findIndex(({ event }) => event.type === "chain" && event.view.nonce === "reverted");
      const later = seen < 0 ? [] : commandsOf(path).slice(seen);
      expect(later.filter(({ type: what }) => what === "submit")).toEqual([]);
    }
  });

  test("no run submits twice, and the resolver only what was fulfilled", () => {
    for (const path of all)
      expect(commandsOf(path).filter(({ type: what }) => what === "submit").length).toBeLessThanOrEqual(1);
    const submitting = jobs.filter((path) => commandsOf(path).some(({ type: what }) => what === "submit"));
    expect(submitting.length).toBeGreaterThan(0);
    for (const path of submitting)
      expect(path[0]?.event).toMatchObject({ type: "resolve", row: { state: "fulfilled" } });
  });

  test("work starts only after a look at the chain showed the payment, and a result only after its write", () => {
    for (const path of all) {
      const commands = commandsOf(path);
      const handled = commands.findIndex(({ type: what }) => what === "handle");
      const seen = path.findIndex(({ event }) => event.type === "chain" && event.view.nonce === "paid");
      expect(handled >= 0 && (seen < 0 || seen > handled), JSON.stringify(commands)).toBe(false);
      const last = commands.at(-1);
      if (last?.type !== "answer" || last.answer.type !== "result" || last.answer.replay) continue;
      const stored = commands.findIndex((command) => command.type === "complete");
      expect(stored >= 0 && acknowledged(path, stored)).toBe(true);
    }
  });

  test("a run that took the lease gives it back, writes an end, or has lost it", () => {
    for (const path of all) {
      const commands = commandsOf(path);
      const took = commands.findIndex((c) => ["insert", "take", "revive"].includes(c.type));
      if (took < 0 || !acknowledged(path, took)) continue;
      const ended = path.some(
        ({ command, event }) =>
          command.type === "release" ||
          event === COMPLETED ||
          (command.type === "write" && (command.to === "fulfilled" || command.to === "void")) ||
          event === LOST ||
          event === UNACKNOWLEDGED,
      );
      expect(ended, JSON.stringify(commands)).toBe(true);
    }
  });
});
