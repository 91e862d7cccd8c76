import { appendFileSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { waitUntil } from "../../../scripts/embedded/wait-until.ts";
import { peakMiB } from "../../processor.ts";
import { median, type Program, startProgram, stopProgram } from "../../programs.ts";
import { type Goal, judge } from "../goals.ts";
import { INDEXER_SETTINGS } from "../indexer.ts";
import { withStage } from "../stage.ts";

// What a change costs that concerns no row: a copy of the program indexes the chain, is changed, and starts again.

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PLAIN_RESTARTS = 3;

/** The program with a Ponder of its own, in this folder; everything else that is installed is shared. */
function copyProgram(folder: string): string {
  for (const part of ["api", "contracts", "indexer", "scripts", "package.json", "tsconfig.json"])
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  const [installed, modules] = [join(ROOT, "node_modules"), join(folder, "node_modules")];
  mkdirSync(modules);
  for (const name of readdirSync(installed))
    if (name !== "ponder") symlinkSync(join(installed, name), join(modules, name));
  cpSync(join(installed, "ponder"), join(modules, "ponder"), { recursive: true });
  return folder;
}

function patchPonder(program: string): void {
  const file = join(program, "node_modules/ponder/package.json");
  const { version, ...rest }: { version: string } = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(
    file,
    JSON.stringify({ ...rest, version: version.replace(/\d+$/, (patch) => String(Number(patch) + 1)) }),
  );
}

interface Run {
  readonly seconds: number;
  /** Events that the handlers were called with. */
  readonly events: number;
  /** Of the escrows' Ponder, if there is one: until its index was ready, and its peak memory. */
  readonly escrows: { readonly seconds: number; readonly peakMiB: number } | null;
}

const ESCROW_READY_MS = 120_000;

async function escrowsOf({ lines }: Program, started: number): Promise<Run["escrows"]> {
  const isReady = () => lines.some((line) => line.includes('"escrow index ready"'));
  if (!(await waitUntil(isReady, ESCROW_READY_MS))) throw new Error("the escrows have no index");
  const seconds = (performance.now() - started) / 1_000;
  const line = lines.findLast((one) => one.includes('"escrow ponder started"')) ?? "";
  return { seconds, peakMiB: peakMiB(Number(/"ponderPid":(\d+)/.exec(line)?.[1])) };
}

async function start(program: string, env: Readonly<Record<string, string>>): Promise<Run> {
  const port = await freePort();
  const [settings, started] = [{ ...INDEXER_SETTINGS, ...env, PONDER_PORT: String(port) }, performance.now()];
  const file = relative(ROOT, join(program, "scripts/indexer.ts"));
  const running = await startProgram(file, settings, { ready: /"index ready"/ });
  const seconds = (performance.now() - started) / 1_000;
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const escrows = settings.ESCROW_ADDRESSES === "" ? null : await escrowsOf(running, started);
  await stopProgram(running);
  const counts = [
    ...metrics.matchAll(/^ponder_indexing_completed_events\{event="(Usdc|Escrow|Custody):[A-Z].*\} (\d+)$/gm),
  ];
  return { seconds, events: counts.reduce((sum, [, , count]) => sum + Number(count), 0), escrows };
}

/** @param transfers how many the chain has. Returns whether all goals were met. */
export const runChange = (transfers: number): Promise<boolean> =>
  withStage({ transfers }, async ({ env, folder }) => {
    const program = copyProgram(join(folder, "program"));
    const first = await start(program, env);
    if (first.events < transfers) throw new Error(`only ${first.events} events were counted`);
    const plain: Run[] = [];
    for (let n = 0; n < PLAIN_RESTARTS; n += 1) plain.push(await start(program, env));
    const usual = median(plain.map(({ seconds }) => seconds));
    console.log(
      `first start ${first.seconds.toFixed(1)} s with ${first.events} events; plain restart ${usual.toFixed(1)} s`,
    );
    const comment = () => appendFileSync(join(program, "indexer/handlers/movements.ts"), "\n// A comment.\n");
    const changes: Readonly<Record<string, () => unknown>> = {
      "a comment in a handler": comment,
      "a fresh own address": () => ({ OWN_ADDRESSES: "0x00000000000000000000000000000000f2e54001" }),
      "settings of the node": () => ({ RPC_COPIES: "10", POLL_MS: "500" }),
      "a patch of Ponder": () => patchPonder(program),
      // Last, because there are two Ponders from then on.
      "an escrow": () => ({ ESCROW_ADDRESSES: "0x00000000000000000000000000000000e5c00001" }),
    };
    let changed: Readonly<Record<string, string>> = env;
    const goals: Goal[] = [];
    for (const [name, change] of Object.entries(changes)) {
      changed = { ...changed, ...(change() ?? {}) };
      const { seconds, events, escrows } = await start(program, changed);
      goals.push(
        { name: `${name}: old events indexed again`, value: events, limit: 0, isFloor: false },
        { name: `${name}: ready, in plain restarts`, value: seconds / usual, limit: 1.5, isFloor: false },
      );
      if (name === "an escrow" && escrows !== null)
        goals.push(
          { name: `${name}: seconds until it has its own index`, value: escrows.seconds, limit: 60, isFloor: false },
          { name: `${name}: MiB of its Ponder`, value: escrows.peakMiB, limit: 400, isFloor: false },
        );
    }
    return judge(goals);
  });
