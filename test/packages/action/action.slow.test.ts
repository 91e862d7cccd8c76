import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Hex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, onTestFinished, test } from "vitest";
import { formatUsd } from "../../../api/platform/money.ts";
import { certify as certifyHere } from "../../../packages/action/src/certify.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { ACTION, metadata, runAction } from "../../support/action/run-action.ts";
import { boardSeeder } from "../../support/board.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { noteSigner } from "../../support/log/memory-log.ts";
import { startRegistry } from "../../support/packages/registry.ts";
import { settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { bareEnvironment } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));

const base = () => ({ "base-url": service.url });
const verify = (wallet: string, more = {}) => runAction({ ...base(), command: "verify", wallet, ...more });
const certify = (key: Hex, more = {}, action = ACTION) =>
  runAction({ ...base(), command: "certify", "payer-private-key": key, ...more }, action);

async function newKey(atomic = 2_000_000n): Promise<{ readonly key: Hex; readonly wallet: Hex }> {
  const key = generatePrivateKey();
  const wallet = privateKeyToAccount(key).address;
  if (atomic > 0n) await chain.fund(wallet, atomic);
  return { key, wallet };
}

/** A service that returns whatever the listener sends. */
async function impostor(listener: RequestListener): Promise<{ "base-url": string }> {
  const server = await serveHttp(listener, "localhost");
  onTestFinished(server.stop);
  return { "base-url": server.url };
}

test("Every input reaches the script, every output comes from it, and every package that it imports is installed", async () => {
  const { using, steps } = metadata.runs;
  expect(using).toBe("composite");
  const handed = Object.values(steps.at(-1)?.env ?? {}).flatMap((value) => /inputs\.([\w-]+)/.exec(value)?.[1] ?? []);
  expect(handed.sort()).toEqual(Object.keys(metadata.inputs).sort());
  for (const [name, { value }] of Object.entries(metadata.outputs))
    expect(value).toBe(`\${{ steps.run.outputs.${name} }}`);
  const installs = steps.flatMap(({ if: when, run = "" }) => {
    const folders = run.matchAll(/^npm install .*--prefix "\$ACTION_PATH(.*)"$/gm);
    return [...folders].map(([, folder]) => [when, folder]);
  });
  expect(installs).toEqual([
    ["inputs.command == 'certify'", ""],
    ["inputs.log-policy != ''", "/../verifier"],
    ["inputs.command == 'examine'", "/../verifier"],
    ["inputs.command == 'examine'", "/../seller-check"],
    ["inputs.command == 'examine'", "/../escrow"],
  ]);
  const { dependencies } = JSON.parse(await readFile(join(ACTION, "package.json"), "utf8"));
  const sources = await Promise.all(
    (await readdir(join(ACTION, "src"))).map((name) => readFile(join(ACTION, "src", name), "utf8")),
  );
  const imported = sources.join("\n").matchAll(/from "(@[^/"]+\/[^/"]+|[^.@n][^/":]*)/g);
  expect([...new Set([...imported].map(([, name]) => name))].sort()).toEqual(Object.keys(dependencies).sort());
});

const [BASIC, SUITE] = [formatUsd(PRICES.basic), formatUsd(PRICES.suite)];

describe("a scheduled run", () => {
  test("The certify command pays once, and again only when the certificate is about to expire", {
    timeout: 60_000,
  }, async () => {
    const { key, wallet } = await newKey();
    const first = await certify(key);
    expect(first).toMatchObject({ code: 0, outputs: { verified: "true", paid: BASIC } });
    expect(first.outputs["cert-url"]).toMatch(new RegExp(`^${service.url}/cert/[0-9a-f]{16}$`));
    expect(first.outputs["badge-markdown"]).toContain(first.outputs["cert-url"]);
    expect(first.summary).toContain(`Certified: \`${wallet}\``);
    const second = await certify(key);
    expect(second).toMatchObject({ code: 0, outputs: { paid: "0.00", "cert-url": first.outputs["cert-url"] } });
    expect((await certify(key, { "renew-within-days": "29" })).outputs.paid).toBe("0.00");
    const renewed = await certify(key, { "renew-within-days": "30" });
    expect(renewed.outputs).toMatchObject({ paid: BASIC, verified: "true" });
    expect(renewed.outputs["cert-url"]).not.toBe(first.outputs["cert-url"]);
    expect(await settlements(chain, wallet)).toHaveLength(2);
    for (const { log, summary } of [first, second, renewed]) expect(log + summary).not.toContain(key.slice(2));
  });

  test("The certify command runs the suite only if its price is within max-price", async () => {
    const { key, wallet } = await newKey();
    const refused = await certify(key, { test: "suite" });
    expect(refused).toMatchObject({
      code: 1,
      log: expect.stringContaining(`${SUITE} USDC, more than max-price ${BASIC}. Nothing was signed.`),
    });
    expect(await settlements(chain, wallet)).toEqual([]);
    expect((await certify(key, { test: "suite", "max-price": SUITE })).outputs.paid).toBe(SUITE);
  });

  test("The certify command reports that a wallet without money was not charged", async () => {
    const { key } = await newKey(0n);
    expect(await certify(key)).toMatchObject({
      code: 1,
      log: expect.stringMatching(/^::error::The payment was rejected \(402\) and nothing was charged/),
    });
  });

  test("The certify and verify commands fail for a wallet with a current FAIL, even with a certificate", async () => {
    const seeder = boardSeeder(service.database);
    onTestFinished(() => seeder.stop());
    const failed = { product: "scam", result: "fail", issuedAt: new Date() } as const;
    const refusalFor = (wallet: string) =>
      `::error::The wallet ${wallet} is not verified: FAIL in scam: ${service.url}/verify?wallet=${wallet}`;
    const uncertified = await newKey();
    await seeder.add({ ...failed, wallet: uncertified.wallet.toLowerCase() as Hex });
    expect(await certify(uncertified.key)).toMatchObject({
      code: 1,
      outputs: { verified: "false", paid: "0.00" },
      log: `${refusalFor(uncertified.wallet)}. Nothing was paid: no certificate makes up for a FAIL.\n`,
    });
    expect(await settlements(chain, uncertified.wallet)).toEqual([]);

    const { key, wallet } = await newKey();
    expect(await certify(key)).toMatchObject({ code: 0 });
    await seeder.add({ ...failed, wallet: wallet.toLowerCase() as Hex });
    const { code, outputs, log, summary } = await certify(key);
    expect({ code, outputs, log }).toMatchObject({
      code: 1,
      outputs: { verified: "false", paid: "0.00" },
      log: `${refusalFor(wallet)}\n`,
    });
    expect(summary).toContain(`Not verified: \`${wallet}\``);
    expect(await verify(wallet, { require: "can_pay" })).toMatchObject({ code: 1, log: `${refusalFor(wallet)}\n` });
    expect(await settlements(chain, wallet)).toHaveLength(1);
  });

  test("The certify command signs nothing for another token or network, or for terms that the stock client would misread", async () => {
    const { key } = await newKey();
    const [record, unpaid] = [
      await (await fetch(`${service.url}/verify?wallet=${devAccount(7).address}`)).text(),
      await fetch(`${service.url}/test/basic`, { method: "POST" }),
    ];
    const terms = JSON.parse(Buffer.from(unpaid.headers.get("payment-required") ?? "", "base64").toString());
    const inputs = {
      command: "certify",
      test: "basic",
      maxPrice: PRICES.basic,
      renewWithinDays: 7,
      privateKey: key,
    } as const;
    const refused = "does not accept USDC on Base. Nothing was signed.";
    for (const [change, reason] of [
      [{ asset: "0x00000000000000000000000000000000000000aa" }, refused],
      [{ network: "eip155:1" }, refused],
      [{ maxTimeoutSeconds: "300" }, "has terms with a wrong maxTimeoutSeconds. Nothing was signed."],
      [{ maxTimeoutSeconds: 31_536_000 }, "has terms with a wrong maxTimeoutSeconds. Nothing was signed."],
      [{ amount: Number(PRICES.basic) }, "has terms with a wrong amount. Nothing was signed."],
    ] as const) {
      const signed: unknown[] = [];
      const other = await impostor((request, response) => {
        if (request.method === "GET") return void response.end(record);
        signed.push(...[request.headers["payment-signature"] ?? []].flat());
        const changed = { ...terms, accepts: terms.accepts.map((one: object) => ({ ...one, ...change })) };
        response.writeHead(402, { "payment-required": Buffer.from(JSON.stringify(changed)).toString("base64") }).end();
      });
      await expect(certifyHere({ ...inputs, baseUrl: other["base-url"] })).rejects.toThrow(reason);
      expect(signed).toEqual([]);
    }
  });
});

test("With a log policy, the action's steps install what a proof check needs in another repository, and check the proof", async () => {
  const [repository, registry] = [await mkdtemp(join(tmpdir(), "repository-")), await startRegistry()];
  onTestFinished(() => rm(repository, { recursive: true, force: true }));
  onTestFinished(registry.stop);
  const copy = join(repository, ".github/actions/agent-payment-trust");
  const isOurs = (path: string) => !/\/(node_modules|dist)(\/|$)/.test(path.slice(ACTION.length - "action".length));
  await cp(ACTION, copy, { recursive: true, filter: isOurs });
  await cp(join(ACTION, "../verifier"), join(copy, "../verifier"), { recursive: true, filter: isOurs });
  const installs = metadata.runs.steps.filter(({ if: when }) => when === "inputs.log-policy != ''");
  const env = { ...bareEnvironment(), ...registry.environment(repository), ACTION_PATH: copy };
  for (const { run = "exit 9" } of installs) await promisify(execFile)("bash", ["-eo", "pipefail", "-c", run], { env });
  const { key, wallet } = await newKey();
  const { outputs } = await certify(key);
  const policy = await policyOf(outputs["cert-url"]);
  const given = { ...base(), command: "verify", wallet, "log-policy": policy, "log-required": "true" };
  const ran = await runAction(given, copy);
  expect(ran, ran.log).toMatchObject({
    code: 0,
    outputs: { verified: "true", log: "proven", "log-wallet": "nothing" },
  });
  // Another log with the same name is not one that the step trusts.
  const foreign = policy.replace(/^log (\S+)/, `log ${noteSigner(`${new URL(service.url).host}/log`, 9).key.vkey}`);
  expect(await runAction({ ...given, "log-policy": foreign }, copy)).toMatchObject({
    code: 1,
    outputs: { verified: "true", log: "refused" },
    log: expect.stringMatching(/^::error::A proof of the public log is wrong: /),
  });
});

/** The service's log policy, once the certificate is in its log. */
async function policyOf(certUrl = ""): Promise<string> {
  const proof = `${service.url}${new URL(certUrl).pathname}.tlog-proof`;
  await expect.poll(async () => (await fetch(proof)).status, { timeout: 30_000 }).toBe(200);
  return ((await (await fetch(`${service.url}/log`)).json()) as { policy: string }).policy;
}

test("A copy of the action's folder works alone in another repository, and names the folders that it lacks", async () => {
  const repository = await mkdtemp(join(tmpdir(), "vendored-"));
  onTestFinished(() => rm(repository, { recursive: true, force: true }));
  const copy = join(repository, ".github/actions/agent-payment-trust");
  await cp(ACTION, copy, { recursive: true, filter: (path) => !path.endsWith("node_modules") });
  await symlink(join(ACTION, "../../node_modules"), join(copy, "node_modules"));
  const { key, wallet } = await newKey();
  expect(await certify(key, {}, copy)).toMatchObject({ code: 0, outputs: { verified: "true", paid: BASIC } });
  const logged = { ...base(), command: "verify", wallet, "log-policy": "quorum none" };
  expect(await runAction(logged, copy)).toMatchObject({
    code: 1,
    log: expect.stringMatching(/^::error::log-policy needs the folder packages\/verifier next to the action's/),
  });
  const exam = { command: "examine", url: "http://127.0.0.1:9/haiku", rpc: chain.rpcUrl, "payer-private-key": key };
  expect(await runAction(exam, copy)).toMatchObject({
    code: 1,
    log: expect.stringMatching(
      /^::error::examine needs the folders packages\/escrow, packages\/seller-check and packages\/verifier next to/,
    ),
  });
});

describe("a pull request", () => {
  test("The verify command passes for a verified wallet and fails for a capability that the wallet lacks", async () => {
    const { key, wallet } = await newKey();
    const certified = await certify(key);
    expect(await verify(wallet, { require: "can_pay" })).toMatchObject({
      code: 0,
      outputs: { verified: "true", log: "not_checked", "record-url": `${service.url}/verify?wallet=${wallet}` },
      summary: expect.stringMatching(/\| can_pay \| pass \| yes \|\n\| scam_resistance \| not tested \| {2}\|/),
    });
    const policy = await policyOf(certified.outputs["cert-url"]);
    expect(await verify(wallet, { "log-policy": policy, "log-required": "true" })).toMatchObject({
      code: 0,
      outputs: { verified: "true", log: "proven" },
      summary: expect.stringContaining("Public log: **proven**"),
    });
    const lacking = await verify(wallet, { require: "can_pay, scam_resistance" });
    expect(lacking).toMatchObject({ code: 1, outputs: { verified: "true" } });
    expect(lacking.log).toMatch(/^::error::The wallet 0x\w+ has no fresh PASS for scam_resistance: /);
  });

  test("The verify command fails for an unknown wallet and prints the URL of its record", async () => {
    const { wallet } = await newKey(0n);
    expect(await verify(wallet)).toMatchObject({
      code: 1,
      outputs: { verified: "false" },
      log: `::error::The wallet ${wallet} is not verified: ${service.url}/verify?wallet=${wallet}\n`,
    });
  });

  test("A response that is not a record fails the step, with one line that cannot command the runner", async () => {
    const other = await impostor((_request, response) => void response.end('{"verified": "true"}'));
    const { code, log } = await verify(devAccount(1).address, other);
    expect([code, log]).toEqual([
      1,
      expect.stringMatching(/^::error::http:\S+ did not return a verification record\.\n$/),
    ]);
  });
});

test("A refused key fails the step with one line that does not repeat it", async () => {
  const { code, log } = await certify("0xsecret");
  expect([code, log]).toEqual([1, expect.stringMatching(/^::error::payer-private-key is not a key[^\n]*\n$/)]);
  expect(log).not.toContain("0xsecret");
});

test("The action uses no other action, and Node is installed only in the action's own folder", async () => {
  expect(metadata.runs.steps.filter(({ uses }) => uses !== undefined)).toEqual([]);
  const work = await mkdtemp(join(tmpdir(), "action-node-"));
  onTestFinished(() => rm(work, { recursive: true, force: true }));
  const step = metadata.runs.steps.find(({ id }) => id === "node");
  const [output, path, environment] = ["output", "path", "env"].map((name) => join(work, name)) as [
    string,
    string,
    string,
  ];
  const own = { GITHUB_OUTPUT: output, GITHUB_PATH: path, GITHUB_ENV: environment, OWN: join(work, "own") };
  const { stderr } = spawnSync("bash", ["-eo", "pipefail", "-c", step?.run ?? "exit 9"], {
    ...{ cwd: work, encoding: "utf8", env: { ...process.env, ...own } },
  });
  const program = /^program=(.+)$/m.exec(await readFile(output, "utf8").catch(() => stderr))?.[1] ?? "";
  expect(spawnSync(program, ["--version"], { encoding: "utf8" }).stdout).toBe("v24.21.0\n");
  expect([existsSync(path), existsSync(environment)]).toEqual([false, false]);
});
