import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Hex } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { expect, onTestFinished, test } from "vitest";
import { ACTION, metadata, runAction } from "../../support/action/run-action.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { startRegistry } from "../../support/packages/registry.ts";
import { openShop, quoting } from "../../support/sellers/shop.ts";
import { bareEnvironment } from "../../support/service/environment.ts";

const chain = await forFile(startTestChain());
const key: Hex = generatePrivateKey();
await chain.fund(privateKeyToAddress(key), 100_000n);

const examine = (inputs: Readonly<Record<string, string>>, action = ACTION, runner = {}) =>
  runAction({ command: "examine", rpc: chain.rpcUrl, "payer-private-key": key, ...inputs }, action, runner);

test("A good seller reaches the level, and the full report is written to a file", async () => {
  const shop = await forFile(openShop(chain));
  const given = {
    url: `${shop.url}/haiku`,
    other: "/sonnet",
    body: '{"about":"rain"}',
    report: "exam.json",
  };
  const { code, log, outputs, summary, folder } = await examine(given);
  expect([code, outputs], log).toEqual([0, { level: "full", report: "exam.json", failing: "" }]);
  expect(summary).toContain(`### Level full: \`\` ${shop.url}/haiku \`\``);
  expect(summary.match(/^\| \w+ \| pass \| {2}\|$/gm)).toHaveLength(8);
  const report = await readFile(join(folder, "exam.json"), "utf8");
  const { level, spent, exchanges } = JSON.parse(report);
  expect([level, spent]).toEqual(["full", "3000"]);
  expect(exchanges[0]).toMatchObject({
    request: { method: "POST", body: '{"about":"rain"}' },
    answer: { status: 402 },
  });
  expect(log + summary + report).not.toContain(key.slice(2));
});

test("A seller below the level fails the step, with one line that names the failing check and cannot command the runner", async () => {
  const shop = await forFile(openShop(chain, "public cache"));
  const { code, log, outputs, summary } = await examine({ url: `${shop.url}/haiku` });
  expect([code, outputs]).toEqual([1, { level: "safe", report: "seller-exam.json", failing: "caching" }]);
  expect(log).toMatch(
    /^::error::The seller's level is safe, but full is required: caching \(not so: A shared cache may not store [^\n]+\n$/,
  );
  expect(summary).toMatch(/\| caching \| fail \| not so: `` A shared cache may not store the paid answer, [^`]+`` \|/);
});

test("Text from the seller reaches the log, the summary, and the outputs without commanding the runner", async () => {
  const url = "http://x/\n::set-output name=level::full\n##[set-output name=level;]full\u001b[2J\u202e`|<script>";
  const shop = await forFile(
    openShop(
      chain,
      quoting((terms) => ({ ...terms, resource: { url } })),
    ),
  );
  const { code, log, outputs, summary } = await examine({ url: `${shop.url}/haiku` });
  expect([code, outputs]).toEqual([1, { level: "none", report: "seller-exam.json", failing: expect.any(String) }]);
  expect(log).toMatch(/^::error::[^\n]*\(named http:\/\/x\/[^\n]*\n$/);
  for (const command of ["##[", "\u001b", "\u202e", "\n::"]) expect(log + summary).not.toContain(command);
  expect(summary.split("\n").filter((line) => line.startsWith("| terms"))).toHaveLength(1);
});

test("The action's steps install what an exam needs in another repository", { timeout: 240_000 }, async () => {
  const [repository, registry] = [await mkdtemp(join(tmpdir(), "repository-")), await startRegistry()];
  onTestFinished(() => rm(repository, { recursive: true, force: true }));
  onTestFinished(registry.stop);
  const actions = join(repository, ".github/actions");
  const copy = join(actions, "agent-payment-trust");
  const isOurs = (path: string) => !/\/(node_modules|dist)(\/|$)/.test(path.slice(ACTION.length - "action".length));
  for (const [folder, place] of [
    [ACTION, copy],
    [join(ACTION, "../escrow"), join(actions, "escrow")],
    [join(ACTION, "../verifier"), join(actions, "verifier")],
    [join(ACTION, "../seller-check"), join(actions, "seller-check")],
  ] as const)
    await cp(folder, place, { recursive: true, filter: isOurs });
  const installs = metadata.runs.steps.filter(({ if: when }) => when?.includes("inputs.command == 'examine'"));
  expect(installs).toHaveLength(2);
  const { dependencies } = JSON.parse(await readFile(join(ACTION, "../seller-check/package.json"), "utf8"));
  expect(installs[0]?.run).toContain(` viem@${dependencies.viem} `);
  const env = { ...bareEnvironment(), ...registry.environment(repository), ACTION_PATH: copy };
  for (const { run = "exit 9" } of installs) await promisify(execFile)("bash", ["-eo", "pipefail", "-c", run], { env });
  const shop = await forFile(openShop(chain));
  const { code, log, outputs } = await examine({ url: `${shop.url}/haiku` }, copy);
  expect([code, outputs.level], log).toEqual([0, "full"]);
});

test("The same seller is accepted where safe is enough, and GitHub masks the key", async () => {
  const shop = await forFile(openShop(chain, "public cache"));
  const { code, log } = await examine({ url: `${shop.url}/haiku`, level: "safe" }, ACTION, { GITHUB_ACTIONS: "true" });
  expect([code, log.split("\n").filter((line) => line.includes(key.slice(2)))], log).toEqual([
    0,
    [`::add-mask::${key}`, `::add-mask::${key.slice(2)}`],
  ]);
  expect(log).toMatch(/^level: safe\nreport: seller-exam.json\nfailing: caching$/m);
});

test("A seller who asks for too much is not paid, and the step reports why", async () => {
  const shop = await forFile(openShop(chain));
  const { code, log, outputs } = await examine({ url: `${shop.url}/haiku`, "max-price": "0.0009" });
  expect([code, outputs.level, outputs.failing]).toEqual([1, "none", ""]);
  expect(log).toContain("full is required: an entry costs 0.001 USDC, but the ceiling is 0.0009 USDC");
});

test("With an unreachable node there is no verdict, and the node's URL stays out of the log", async () => {
  const { code, log } = await examine({
    url: "http://127.0.0.1:9/haiku",
    rpc: "http://127.0.0.1:9/secret-of-the-provider",
  });
  expect([code, log]).toEqual([
    1,
    expect.stringMatching(/^::error::The exam could not be held, and nothing was judged: /),
  ]);
  expect(log).not.toContain("secret-of-the-provider");
});
