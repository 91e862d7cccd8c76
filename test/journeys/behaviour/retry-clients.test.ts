import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { WAYS, type Way } from "../../../api/certification/retry/lost-order.ts";
import { buy, orderUrl, passWindow, startLossy } from "../../support/behaviour/lost-orders.ts";
import { askResult, PURSE } from "../../support/behaviour/runs.ts";
import { startStage } from "../../support/behaviour/stage.ts";

// By hand: `bench/retry-clients/` says how to install the clients, whose folder RETRY_CLIENTS names.
const folder = process.env.RETRY_CLIENTS;
const run = promisify(execFile);

const FETCH = ["bare", "p-retry around it", "ky around it", "ky inside it"];
const AXIOS = ["bare", "p-retry around it", "axios-retry added before it", "axios-retry added after it"];
const PYTHON = ["bare", "tenacity around it"];

const node = [process.execPath, "client.mjs"] as const;
const rust = [join(folder ?? "", "rust/target/release/retry-client"), "client"] as const;
const python = [join(folder ?? "", ".venv/bin/python"), "client.py"] as const;

/** Every stock client, what it is run by, and what stands around it. */
const CLIENTS = [
  { client: "@x402/fetch", program: node, wrappers: FETCH },
  { client: "x402-fetch", program: node, wrappers: FETCH },
  { client: "@x402/axios", program: node, wrappers: AXIOS },
  { client: "x402-axios", program: node, wrappers: AXIOS },
  { client: "x402[httpx]", program: python, wrappers: PYTHON },
  { client: "x402[requests]", program: python, wrappers: PYTHON },
  { client: "x402-reqwest", program: rust, wrappers: ["bare"] },
];

test.runIf(folder)("who pays twice is as published", { timeout: 1_200_000 }, async () => {
  const stage = await startStage();
  const ground = { ...stage, at: stage.service.url };

  /** What a client's run ends in. The late answer takes as long as it really does. */
  async function verdictOf([command, file]: readonly [string, string], args: readonly string[], way: Way) {
    const key = generatePrivateKey();
    const account = privateKeyToAccount(key);
    await stage.chain.fund(account.address, PURSE);
    const session = await startLossy(ground, { way, lost: 2, account });
    await buy(session, 1);
    const env = { ...process.env, PAYER_PRIVATE_KEY: key };
    const { stdout } = await run(command, [file, ...args, orderUrl(session, 2)], { cwd: folder, env });
    console.log(args.join(", "), way, stdout.trim());
    await passWindow(stage, session);
    const { body } = await askResult(session);
    return body.status === "complete" ? String(body.verdict).toUpperCase() : "–";
  }

  const lines: string[] = [];
  for (const { client, program, wrappers } of CLIENTS) {
    const line = async (wrapper: string) => {
      const verdicts = await Promise.all(WAYS.map((way) => verdictOf(program, [client, wrapper], way)));
      return `| \`${client}\` | ${wrapper} | ${verdicts.join(" | ")} |`;
    };
    lines.push(...(await Promise.all(wrappers.map(line))));
  }
  await stage.stop();
  console.log(lines.join("\n"));
  const published = readFileSync(new URL("../../../docs/behaviour.md", import.meta.url), "utf8");
  expect(lines.filter((line) => !published.includes(line))).toEqual([]);
});
