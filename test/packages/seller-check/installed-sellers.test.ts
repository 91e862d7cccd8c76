import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import type { LookupFunction } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type ExamReport, httpTransport } from "../../../packages/seller-check/src/index.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { waitUntil } from "../../../scripts/embedded/wait-until.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { holdExam } from "../../support/seller/held-exam.ts";
import { serveFacilitator } from "../../support/seller/stock-facilitator.ts";

// By hand: the package's README says how to install the sellers of `bench/seller-exam/`, whose folder SELLERS names.
const folder = process.env.SELLERS ?? "";

const SELLERS = [
  {
    name: "`@x402/next` 2.25 on Next 16.4",
    program: process.execPath,
    args: (port: string) => [
      "node_modules/next/dist/bin/next",
      "start",
      "next",
      "--hostname",
      "127.0.0.1",
      "--port",
      port,
    ],
  },
  {
    name: "`x402-hono` 1.1",
    program: process.execPath,
    args: (port: string, facilitator: string) => ["hono-v1.mjs", port, facilitator],
  },
  {
    name: "`x402` 2.25 for Python on FastAPI 0.165",
    program: join(folder, ".venv/bin/python"),
    args: (port: string, facilitator: string) => ["server.py", port, facilitator],
  },
] as const;

/** A public name, as a shop has one: some sellers name themselves by the request's Host, and some do not. */
const NAME = "shop.test";
const lookup: LookupFunction = (_, { all }, found) =>
  all ? found(null, [{ address: "127.0.0.1", family: 4 }]) : found(null, "127.0.0.1", 4);

type Seller = (typeof SELLERS)[number];

test.runIf(folder)("who passes is as published", { timeout: 300_000 }, async () => {
  const lines: string[] = [];
  for (const seller of SELLERS) lines.push(`| ${seller.name} | ${failing(await examined(seller))} |`);
  console.log(lines.join("\n"));
  const published = readFileSync(new URL("../../../packages/seller-check/README.md", import.meta.url), "utf8");
  expect(lines.filter((line) => !published.includes(line))).toEqual([]);
});

async function examined({ program, args }: Seller): Promise<readonly ExamReport[]> {
  const chain = await startTestChain();
  onTestFinished(() => chain.stop());
  const facilitator = await forFile(serveFacilitator(chain));
  const port = await freePort();
  const shop = spawn(program, args(`${port}`, facilitator.url), {
    cwd: folder,
    env: { ...process.env, FACILITATOR_URL: facilitator.url, NEXT_TELEMETRY_DISABLED: "1" },
    stdio: ["ignore", "ignore", "inherit"],
  });
  onTestFinished(() => void shop.kill());
  const isUp = () =>
    fetch(`http://127.0.0.1:${port}/haiku`).then(
      ({ status }) => status === 402,
      () => false,
    );
  if (!(await waitUntil(isUp, 60_000))) throw new Error(`${program} sells nothing.`);
  const url = `http://${NAME}:${port}`;
  const other = { url: `${url}/sonnet`, method: "GET", body: null };
  const exam = { resource: { url: `${url}/haiku` }, transport: httpTransport({ lookup }) };
  // The payment that another route takes is missing for the check of the lost answer.
  const reports = [await holdExam(chain, { ...exam, other }), await holdExam(chain, exam)];
  shop.kill();
  return reports;
}

/** What fails in either exam, by check; the addresses of this run are left out. */
function failing(reports: readonly ExamReport[]): string {
  const failed = reports.flatMap(({ results }) => results.filter(({ outcome }) => outcome === "fail"));
  const statements = new Map<string, Set<string>>();
  for (const { check, findings } of failed)
    for (const { statement } of findings.filter(({ holds }) => !holds)) {
      const known = statements.get(check) ?? new Set();
      statements.set(check, known.add(statement.replaceAll(/:\d+/g, "").replaceAll(`http://${NAME}`, "")));
    }
  return [...statements].map(([check, said]) => `\`${check}\`: ${[...said].join("; ")}`).join(". ");
}
