// Attacks the real service (PostgreSQL, a chain like Base behind a provider's front, Circle's USDC) and prints what each
// attack costs, before its defenses and now. `--against <folder>` attacks the checkout in that folder, `--write` stores the
// figures as those from before, and `--only <text>` runs the attacks with a row whose id starts with it.
import { execFileSync } from "node:child_process";
import { cpus } from "node:os";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { BESIDE, IN_TURN } from "./attacks/index.ts";
import { type Ground, openGround } from "./ground.ts";
import type { Attack, Value } from "./row.ts";
import { loadSubject } from "./subject.ts";
import { printTable, readBefore, writeBefore } from "./table.ts";

const GIVEN_UP_AFTER_MS = 150_000;
const { values: options } = parseArgs({
  options: {
    against: { type: "string" },
    only: { type: "string", default: "" },
    write: { type: "boolean", default: false },
  },
});
const OWN = fileURLToPath(new URL("../..", import.meta.url));
const folder = options.against === undefined ? OWN : resolve(options.against);
const isWanted = ({ rows }: Attack): boolean => rows.some(({ id }) => id.startsWith(options.only));

/** Why an attack has no figure is its figure. */
async function attack({ rows, run }: Attack, ground: Ground): Promise<Readonly<Record<string, Value>>> {
  const started = performance.now();
  const tooLong = sleep(GIVEN_UP_AFTER_MS, undefined, { ref: false }).then(() => Promise.reject(new Error("no end")));
  const figures = await Promise.race([run(ground), tooLong]).catch((error: unknown) => {
    console.error(error);
    const why = `failed: ${error instanceof Error ? error.message.split("\n")[0]?.slice(0, 40) : error}`;
    return Object.fromEntries(rows.map(({ id }) => [id, why]));
  });
  console.error(JSON.stringify(figures), `${Math.round((performance.now() - started) / 1_000)} s`);
  return figures;
}

async function measure(): Promise<Readonly<Record<string, Value>>> {
  const ground = await openGround(await loadSubject(folder));
  try {
    const beside = Promise.all(BESIDE.filter(isWanted).map((one) => attack(one, ground)));
    const figures: Readonly<Record<string, Value>>[] = [];
    for (const one of IN_TURN.filter(isWanted)) figures.push(await attack(one, ground));
    return Object.assign({}, ...figures, ...(await beside));
  } finally {
    await ground.stop();
  }
}

const figures = await measure();
const [{ model = "" } = {}, ...others] = cpus();
const git = (...args: string[]) => execFileSync("git", ["-C", folder, ...args], { encoding: "utf8" }).trim();
const measured = {
  commit: git("rev-parse", "--short", "HEAD"),
  date: new Date().toISOString().slice(0, 10),
  machine: `${others.length + 1} × ${model}`,
  figures,
};
if (options.write) writeBefore(measured);
const before = readBefore();
const rows = [...IN_TURN, ...BESIDE]
  .filter(isWanted)
  .flatMap((one) => one.rows)
  .toSorted((a, b) => a.line - b.line);
console.log(
  `before: ${before.commit}, ${before.date}, ${before.machine}; after: ${measured.commit}, ${measured.date}, ${measured.machine}`,
);
printTable(rows, before.figures, figures);
const missed = rows.filter(({ id, goal }) => !goal.isReached(figures[id] ?? "not measured"));
console.log(missed.length === 0 ? "every goal is reached" : `${missed.length} of ${rows.length} goals are missed`);
process.exit(missed.length === 0 ? 0 : 1);
