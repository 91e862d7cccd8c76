import { execFile } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { Address } from "viem";
import { table } from "../../scripts/table.ts";
import { spentSince } from "../payments/loads.ts";
import { measure, pay, type Round, sign } from "../payments/paying.ts";
import {
  AT_ONCE,
  type Bed,
  countTransfers,
  type End,
  openBed,
  type Seller,
  startOurs,
  startStock,
} from "../payments/world.ts";
import { type Program, type ProgramOptions, processorMs, ROOT } from "../programs.ts";
import { median, shown } from "../table.ts";

const call = promisify(execFile);
/** A folder for builds, which is not committed and which later runs reuse. */
const CACHE = join(ROOT, "node_modules/.cache/bench-facilitators");
const FOLDER = join(ROOT, "bench/facilitators");

type Run = (file: string, env: Record<string, string>, options?: ProgramOptions) => Promise<Program>;
type Start = (run: Run, env: Record<string, string>) => Promise<Program>;

/** A facilitator, and how to start it. It is null if its toolchain is missing. */
interface Facilitator {
  readonly name: string;
  readonly build: () => Promise<Start | null>;
}

const PYPI = ["x402[evm]==2.25.0", "fastapi==0.165.0", "uvicorn==0.54.0"];

const exists = (command: string, ...args: string[]): Promise<boolean> =>
  call(command, args).then(
    () => true,
    () => false,
  );

const FACILITATORS: readonly Facilitator[] = [
  {
    name: "stock TypeScript, @x402/evm",
    build: async () => (run, env) => run("bench/facilitators/stock.ts", env),
  },
  {
    name: "x402-rs 2.0.2",
    async build() {
      if (!(await exists("cargo", "--version"))) return missing("x402-rs", "cargo is not installed");
      const manifest = join(FOLDER, "x402-rs/Cargo.toml");
      const target = join(CACHE, "x402-rs");
      await call("cargo", ["build", "--release", "--locked", "--manifest-path", manifest, "--target-dir", target]);
      const program = join(target, "release/x402-rs-facilitator");
      return (run, env) => run(program, env, { command: program });
    },
  },
  {
    name: "PyPI x402 2.25.0",
    async build() {
      if (!(await exists("python3", "-c", "import sys, venv; sys.exit(sys.version_info < (3, 10))")))
        return missing("the PyPI facilitator", "Python 3.10 or newer with venv is not installed");
      const home = join(CACHE, "python");
      const python = join(home, "bin/python");
      if (!existsSync(join(home, "whole"))) {
        await call("python3", ["-m", "venv", "--clear", home]);
        await call(python, ["-m", "pip", "install", "--quiet", ...PYPI]);
        mkdirSync(join(home, "whole"));
      }
      return (run, env) => run("bench/facilitators/pypi.py", env, { command: python });
    },
  },
];

function missing(name: string, why: string): null {
  console.log(`Without ${name}: ${why}.`);
  return null;
}

/** The concurrent payers, and the payments that each makes in sequence. */
const LOADS = [
  { payers: 1, each: 20 },
  { payers: 16, each: 6 },
  { payers: 64, each: 3 },
] as const;
const ROUNDS = 3;
/** The number of concurrent copies of one payment. */
const COPIES = 10;
/** The settling process is killed when the first payment is on the chain. The payers resend their headers for `patienceMs`. */
const CRASH = { payers: 64, patienceMs: 25_000, pauseMs: 500 };
/** x402-rs does not start on a chain without an ERC-6492 validator, Permit2, and two proxies. The payments do not call them. */
const ASKED_FOR: readonly Address[] = [
  "0xdAcD51A54883eb67D95FAEb2BBfdC4a9a6BD2a3B",
  "0x000000000022D473030F116dDEE9F6B43aC78BA3",
  "0x402085c248EeA27D92E8b30b2C58ed07f9E20001",
  "0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002",
];

interface Contestant extends Seller {
  readonly name: string;
}

type Row = readonly string[];

/**
 * Compares our relayer with other facilitators on one chain. Each serves a seller of the same product: ours serves our service's
 * gate, and the others serve the stock middleware. Payments are signed beforehand. Prints tables.
 */
export async function compareFacilitators(): Promise<void> {
  const ends: End[] = [];
  try {
    const payees = ["ours", ...FACILITATORS].map((_, at): Address => `0x00000000000000000000000000000000c0ffee1${at}`);
    const bed = await openBed({ mining: AT_ONCE, payers: 64 }, payees, ends);
    for (const address of ASKED_FOR) await bed.anvil.client.setCode({ address, bytecode: "0x00" });
    const contestants = await startAll(bed, payees);
    for (const { side } of contestants) await measure(side, { payers: bed.payers.slice(0, 16), each: 2 });
    console.log(
      `\n${new Date().toISOString().slice(0, 10)}, ${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}`,
    );
    for (const load of LOADS) await compareSpeed(bed, contestants, load);
    const safety: Row[] = [];
    for (const one of contestants) safety.push([one.name, ...(await copies(bed, one)), ...(await crash(bed, one))]);
    const head = [`transactions for ${COPIES} copies of a payment`, "charged without a response after a kill -9"];
    print(`Copies, and a crash among ${CRASH.payers} payments`, head, safety);
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}

async function startAll(bed: Bed, [own, ...payees]: readonly Address[]): Promise<readonly Contestant[]> {
  const contestants: Contestant[] = [{ name: "ours", ...(await startOurs(bed, own as Address)) }];
  for (const [at, { name, build }] of FACILITATORS.entries()) {
    const start = await build();
    const payTo = payees[at] as Address;
    if (start !== null) contestants.push({ name, ...(await startStock(bed, payTo, (env) => start(bed.run, env))) });
  }
  return contestants;
}

async function compareSpeed(
  bed: Bed,
  contestants: readonly Contestant[],
  { payers: count, each }: (typeof LOADS)[number],
) {
  const { client } = bed.anvil;
  const load = { payers: bed.payers.slice(0, count), each };
  const rounds = contestants.map(() => [] as (Round & { readonly ms: number; readonly gas: number })[]);
  for (let round = 0; round < ROUNDS; round++)
    for (const [at, { side, processes }] of contestants.entries()) {
      const spent = () => processes().reduce((sum, pid) => sum + processorMs(pid), 0);
      const [block, before] = [await client.getBlockNumber(), spent()];
      const measured = await measure(side, load);
      const ms = (spent() - before) / (count * each);
      const { gas } = await spentSince(client, side.sender, block);
      rounds[at]?.push({ ...measured, ms, gas: gas / (count * each) });
    }
  const head = ["payments/s", "p50, ms", "p99, ms", "processor ms per payment", "gas per payment"];
  const rows = contestants.map(({ name }, at): Row => {
    const picks = ["perSecond", "p50", "p99", "ms", "gas"] as const;
    return [name, ...picks.map((pick) => shown(median((rounds[at] ?? []).map((one) => one[pick]))))];
  });
  print(`${count} payer${count === 1 ? "" : "s"}`, head, rows);
}

/** Counts the transactions for concurrent copies of one payment. */
async function copies({ anvil: { client }, payers }: Bed, { side }: Contestant): Promise<Row> {
  const [header = ""] = await sign(side, payers[0] as (typeof payers)[number], 1);
  const block = await client.getBlockNumber();
  await Promise.all(Array.from({ length: COPIES }, () => pay(side, header)));
  await sleep(3_000);
  return [String((await spentSince(client, side.sender, block)).transactions)];
}

/** Counts the payments that were charged but never got a response with the product. */
async function crash({ anvil: { client }, payers: all }: Bed, { side, crash: kill }: Contestant): Promise<Row> {
  const payers = all.slice(0, CRASH.payers);
  const headers = (await Promise.all(payers.map((payer) => sign(side, payer, 1)))).flat();
  const block = await client.getBlockNumber();
  const until = performance.now() + CRASH.patienceMs;
  const insist = async (header: string): Promise<boolean> => {
    while (performance.now() < until) {
      if ((await pay(side, header).catch(() => null)) !== null) return true;
      await sleep(CRASH.pauseMs);
    }
    return false;
  };
  const answers = headers.map(insist);
  while ((await countTransfers(client, side.payTo, block + 1n)) === 0) await sleep(10);
  await kill();
  const served = (await Promise.all(answers)).filter(Boolean).length;
  const charged = await countTransfers(client, side.payTo, block + 1n);
  return [`${charged - served} of ${charged}`];
}

const print = (title: string, head: Row, rows: readonly Row[]): void =>
  console.log(`\n${title}\n\n${table(["facilitator", ...head], rows)}`);
