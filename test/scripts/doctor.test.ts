import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { type Config, parseConfig } from "../../api/platform/config/config.ts";
import { inspectAccounts } from "../../scripts/doctor/accounts.ts";
import { inspectDatabase } from "../../scripts/doctor/database.ts";
import type { Finding } from "../../scripts/doctor/finding.ts";
import { inspectNodes } from "../../scripts/doctor/nodes.ts";
import { inspectGithub, inspectService, inspectWitnesses } from "../../scripts/doctor/web.ts";
import { devAccount, privateKeyOf } from "../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { startFaultyNode } from "../support/chain/nodes.ts";
import { refuse, replyTo } from "../support/chain/rpc.ts";
import { forFile } from "../support/for-file.ts";
import { serveHttp } from "../support/http-server.ts";
import { freshDatabase } from "../support/service/database.ts";
import { bareEnvironment, completeEnvironment } from "../support/service/environment.ts";
import { startService } from "../support/service/service.ts";

const COMMAND = fileURLToPath(new URL("../../scripts/doctor.ts", import.meta.url));
const [chain, sepolia] = [await forFile(startTestChain()), await forFile(startTestChain({ network: "eip155:84532" }))];
const node = await forFile(startFaultyNode(chain));
const service = await forFile(startService({ chain }));

let answer: (request: IncomingMessage, response: ServerResponse) => void;
/** A third party with the test's responses. */
const other = await forFile(serveHttp((request, response) => answer(request, response)));
const answering = (status: number, body: unknown = {}) => {
  answer = (_, response) => response.writeHead(status).end(JSON.stringify(body));
};

let env: Record<string, string>;

beforeAll(async () => {
  const database = await freshDatabase();
  env = {
    ...completeEnvironment(Buffer.alloc(32, 1).toString("base64url")),
    DATABASE_URL: database.apiUrl,
    BASE_RPC_URL: node.url,
    BASE_SEPOLIA_RPC_URL: sepolia.rpcUrl,
    FACILITATOR_PRIVATE_KEY: privateKeyOf(devAccount(5)),
    GITHUB_API_URL: other.url,
  };
});

function configOf(changes: Readonly<Record<string, string>> = {}): Config {
  const config = parseConfig({ ...env, ...changes });
  if ("problem" in config) throw new Error(config.problem);
  return config;
}
const linesOf = (findings: readonly Finding[]) =>
  findings.map(({ level, subject, text }) => `${level} ${subject}: ${text}`);
const wrongIn = (findings: readonly Finding[]) => linesOf(findings.filter(({ level }) => level !== "ok"));

describe("the doctor's check of the database", () => {
  test("It finds the version, role, and clock in order", async () => {
    const found = linesOf(await inspectDatabase(configOf()));
    expect(found[0]).toMatch(/^ok DATABASE_URL: PostgreSQL \d+[\d.]*, role trust_service, with a schema$/);
    expect(found).toContain("ok clock: matches the database's");
    // The tests' server runs with fsync off, which the doctor must report.
    expect(found).toContain("fail DATABASE_URL: fsync is off: turn it on, or a crash may lose charged payments");
  });

  test("It reports a role with too many rights, a missing schema, and an unreachable server", async () => {
    const { ownerUrl } = await freshDatabase();
    const failed = async (DATABASE_URL: string) => linesOf(await inspectDatabase(configOf({ DATABASE_URL }))).join();
    expect(await failed(ownerUrl)).toMatch(/^fail DATABASE_URL: The role in DATABASE_URL can change/);
    expect(await failed(ownerUrl.replace(/[^/]+$/, "postgres"))).toMatch(/has no schema. Run `npm run migrate`/);
    expect(await failed("postgres://trust:secret@127.0.0.1:1/trust")).toMatch(/cannot be used/);
  });

  test("It reports a variable of another installation, and does not claim an unclaimed database", async () => {
    expect(wrongIn(await inspectDatabase(configOf())).filter((line) => line.includes("installation"))).toEqual([]);
    const { databaseUrl } = service.config;
    // `startService` does not claim the database, and the doctor must not either.
    expect(wrongIn(await inspectDatabase(configOf({ DATABASE_URL: databaseUrl }))).join()).not.toContain(
      "installation",
    );
  });
});

describe("the doctor's check of each node", () => {
  const inspect = () => inspectNodes("eip155:8453", configOf());
  const ALONE = "note BASE_RPC_URL: has one node; add a second one from another provider, after a comma";

  test("It reports the node's limits", async () => {
    await chain.mine();
    const found = linesOf(await inspect());
    expect(found[0]).toMatch(/^ok BASE_RPC_URL: chain 8453, block \d+, 10 calls per request, 9000 blocks per search$/);
    expect(found.slice(1)).toEqual([ALONE]);
  });

  test.each([
    [
      "an unreachable node",
      async () => null,
      /^fail .*does not respond \(.+\): check the URL, and the provider's key and plan$/,
    ],
    [
      "another chain's node",
      async (call: Parameters<typeof replyTo>[0], pass: (call: never) => Promise<never>) =>
        call.method === "eth_chainId" ? replyTo(call, "0x1") : pass(call as never),
      /^fail .*is a node of chain 1: expected Base, chain 8453$/,
    ],
  ] as const)("It refuses %s", async (_, fault, line) => {
    node.become(fault as never);
    const [found] = linesOf(await inspect());
    node.become(null);
    expect(found).toMatch(line);
  });

  test("It reports what to set for a node with narrow limits, and what is missing", async () => {
    await chain.mine();
    node.become(async (call, pass) => {
      const [first, second] = call.params ?? [];
      if (call.method === "eth_getLogs") {
        const { fromBlock, toBlock } = first as { fromBlock: string; toBlock: string };
        if (Number(toBlock) - Number(fromBlock) >= 500) return refuse(call, -32_600, "at most 500 blocks");
      }
      if (call.method === "eth_getBlockByNumber" && first === "finalized") return replyTo(call, null);
      if (call.method === "eth_getBalance" && second !== "latest") return refuse(call, -32_000, "missing trie node");
      return pass(call);
    });
    const found = wrongIn(await inspect());
    node.become(null);
    expect(found).toEqual([
      "fail BASE_RPC_URL: does not support the block tag finalized, so no payment becomes final: use another provider",
      expect.stringMatching(
        /^note BASE_RPC_URL: searches (281|500|[1-4]\d\d) blocks per request: set LOG_BLOCK_RANGE=\d+$/,
      ),
      ALONE,
    ]);
  });

  test("It reports a wrong clock", async () => {
    node.become(async (call, pass) => {
      const reply = await pass(call);
      if (call.method !== "eth_getBlockByNumber") return reply;
      const block = reply.result as { timestamp: string };
      return { ...reply, result: { ...block, timestamp: `0x${(Math.floor(Date.now() / 1000) + 90).toString(16)}` } };
    });
    const found = wrongIn(await inspect());
    node.become(null);
    expect(found[0]).toMatch(
      /its newest block is (89|90|91) seconds in the future: synchronize this machine's clock \(NTP\)$/,
    );
  });
});

test("The doctor reports an account without ETH, a blacklisted receiver, and an address without a contract", async () => {
  const rich = linesOf(await inspectAccounts(configOf()));
  expect(rich).toContain(`ok FACILITATOR_PRIVATE_KEY: ${devAccount(5).address.toLowerCase()} holds 100 ETH on Base`);
  expect(rich).toContain(
    "note ESCROW_ADDRESSES: is missing: the escrow is closed. Run npm run deploy, and paste what it prints",
  );
  const receiver = "0x00000000000000000000000000000000000b1ac4";
  await chain.blacklist(receiver);
  const poor = wrongIn(
    await inspectAccounts(
      configOf({
        FACILITATOR_PRIVATE_KEY: `0x${"5b".repeat(32)}`,
        EXAM_PRIVATE_KEY: `0x${"5c".repeat(32)}`,
        PAY_TO_ADDRESS: receiver,
        ESCROW_ADDRESSES: receiver.replace("b1ac4", "b1ac5"),
      }),
    ),
  );
  expect(poor.map((line) => line.replace(/0x\w+/g, "0x…"))).toEqual([
    "fail FACILITATOR_PRIVATE_KEY: 0x… holds 0 ETH on Base: send it ETH for gas, 0.02 to start with",
    "fail FACILITATOR_PRIVATE_KEY: 0x… holds 0 ETH on Base Sepolia: send it ETH for gas, 0.02 to start with",
    "fail ARBITER_PRIVATE_KEY: 0x… holds 0 ETH on Base: send it ETH for gas, 0.02 to start with",
    "fail PAY_TO_ADDRESS: USDC refuses transfers to 0x…: use an account that is not blacklisted",
    "fail EXAM_PRIVATE_KEY: 0x… holds 0.00 USDC on Base: send it USDC, 50 to start with",
    expect.stringMatching(/^fail ESCROW_ADDRESSES: .*no escrow contract exists at 0x….*run npm run deploy/),
  ]);
});

describe("the doctor's check of third parties", () => {
  const github = (limit: number, remaining: number) => ({ resources: { core: { limit, remaining } } });

  test.each([
    ["good", 200, github(5000, 4321), "ok GITHUB_TOKEN: 4321 of 5000 requests are left this hour"],
    ["spent", 200, github(5000, 3), "fail GITHUB_TOKEN: 3 of 5000 requests are left this hour: use a separate token"],
    [
      "refused",
      401,
      {},
      "fail GITHUB_TOKEN: GitHub rejects the token: create a new one without access to private repositories",
    ],
  ] as const)("It checks a %s GitHub token", async (...[, status, body, line]) => {
    answering(status, body);
    expect(linesOf(await inspectGithub(configOf({ GITHUB_TOKEN: "token" })))).toEqual([line]);
  });

  test("It reports a missing GitHub token and an unreachable GitHub", async () => {
    answering(200, github(60, 60));
    expect(linesOf(await inspectGithub(configOf()))).toEqual([
      "note GITHUB_TOKEN: is missing: 60 of 60 requests are left this hour. A token without any scope allows 5,000",
    ]);
    expect(linesOf(await inspectGithub(configOf({ GITHUB_API_URL: "http://127.0.0.1:1" })))).toEqual([
      "fail GITHUB_API_URL: GitHub cannot be reached (bad port): allow HTTPS from this machine to 127.0.0.1:1",
    ]);
  });

  test("It reports on the log's witnesses", async () => {
    expect(linesOf(await inspectWitnesses(configOf()))).toEqual([
      "note LOG_WITNESSES: is missing: no other party vouches for the log",
    ]);
    const { log } = configOf();
    const witnesses = [{ key: { name: "witness.example/w1" }, submission: other.url }];
    const watched = { ...configOf(), log: { ...log, witnessed: { ...log.witnessed, witnesses } } } as unknown as Config;
    answering(400);
    expect(linesOf(await inspectWitnesses(watched))).toEqual(["ok LOG_WITNESSES: witness.example/w1 responds"]);
    answering(502);
    expect(linesOf(await inspectWitnesses(watched))).toEqual([
      "fail LOG_WITNESSES: witness.example/w1 returned status 502: check its URL, or ask its operator",
    ]);
  });
});

describe("the doctor's check of the running service", () => {
  const at = (baseUrl: string, changes: Partial<Config> = {}): Config => ({
    ...configOf(),
    baseUrl,
    port: 1,
    ...changes,
  });

  test("It reports that no service runs yet, or that its address leads nowhere", async () => {
    expect(linesOf(await inspectService(at("http://trust.localhost:1")))).toEqual([
      expect.stringMatching(
        /^note BASE_URL: no response from http:\/\/trust\.localhost:1 yet \(.+\): run this again once/,
      ),
    ]);
    expect(linesOf(await inspectService(at("http://localhost:1"), true))).toEqual([
      expect.stringMatching(
        /^fail BASE_URL: no response from http:\/\/localhost:1 \(.+\): start npm run api and the proxy$/,
      ),
    ]);
    const running = { host: "127.0.0.1", port: Number(new URL(service.url).port) };
    expect(linesOf(await inspectService(at("http://localhost:1", running)))).toEqual([
      expect.stringMatching(
        /^fail BASE_URL: .* cannot be reached \(.+\) while the service runs: check DNS, certificate, and proxy$/,
      ),
    ]);
  });

  test("It reports the parts that are not healthy", async () => {
    const found = linesOf(await inspectService(at(service.url)));
    expect(found).toContain("ok proxy: passes the terms of payment");
    expect(found).toContain("ok proxy: passes long payments");
    expect(found).toContain(`fail status: ok is false: see the failing components at ${service.url}/status`);
    expect(found).toContain(
      "fail indexer: the index is not ready: start npm run indexer, or wait until it has caught up",
    );
  });

  test("It reports a proxy that is not trusted, cuts headers, and passes only some paths", async () => {
    answer = (request, response) => {
      const isLong = String(request.headers["payment-signature"] ?? "").length > 4_000;
      response.writeHead(isLong ? 400 : request.url === "/health" ? 200 : 502, { "x-request-id": randomUUID() }).end();
    };
    const found = wrongIn(await inspectService(at(other.url, { trustedProxies: ["10.0.0.1"] })));
    expect(found.map((line) => line.split(":")[0])).toEqual([
      ...["fail TRUSTED_PROXIES", "fail proxy", "fail proxy", "fail status"],
    ]);
    expect(found[1]).toContain("returned 502 instead of 402 with terms");
    expect(found[2]).toContain("large_client_header_buffers 4 16k");
  });
});

test("npm run doctor prints a line for each part and exits with 1 while one fails", async () => {
  answering(200, { resources: { core: { limit: 60, remaining: 60 } } });
  const run = (changes: Readonly<Record<string, string>>) =>
    new Promise<{ readonly code: number; readonly output: string }>((resolve) => {
      execFile(process.execPath, [COMMAND], { env: { ...bareEnvironment(), ...env, ...changes } }, (error, output) =>
        resolve({ code: error === null ? 0 : Number(error.code), output }),
      );
    });
  const { code, output } = await run({ PORT: "1" });
  expect(code).toBe(1);
  expect(output).toContain("FAIL DATABASE_URL: fsync is off");
  expect(output).toMatch(/^ok {3}BASE_SEPOLIA_RPC_URL: chain 84532/m);
  expect(output).toMatch(/\n\n\d to fix\. Each FAIL line has the remedy\.\n$/);
  expect((await run({ PAY_TO_ADDRESS: "0x12" })).output).toBe(
    "FAIL environment: PAY_TO_ADDRESS is wrong: expected the receiving address: 0x and 40 hex digits\n\n1 to fix. Each FAIL line has the remedy.\n",
  );
});
