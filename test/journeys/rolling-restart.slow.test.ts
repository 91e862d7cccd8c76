import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { createServer, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startGuarded } from "../../scripts/embedded/guarded-process.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { findNginx, replaced, startNginx } from "../support/nginx.ts";
import { chargedOnce } from "../support/payments/on-chain.ts";
import { v2 } from "../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../support/payments/signing.ts";
import { type ApiProcess, startApiStage } from "../support/service/api-process.ts";
import { librariesIn, unpackDebian } from "../support/service/debian.ts";
import { createCertificate } from "../support/service/pgbouncer.ts";
import { waitUntil } from "../support/wait-until.ts";

/** HAProxy from Debian. A string gives the reason for its absence. */
function unpackHaproxy(folder: string): { readonly command: string; readonly libraries: string } | string {
  const { stdout: listed, error } = spawnSync("apt-cache", ["depends", "--important", "haproxy"], { encoding: "utf8" });
  if (error) return "there is no apt-cache";
  const needed = [...listed.matchAll(/^ {2}Depends: (lib(?:lua|opentracing)\S+)$/gm)].map(([, name = ""]) => name);
  const missing = unpackDebian(folder, ["haproxy", "libopentracing1", ...needed]);
  if (missing !== null) return missing;
  const command = join(folder, "usr/sbin/haproxy");
  const libraries = librariesIn(folder);
  const { status, stderr } = spawnSync(command, ["-v"], { encoding: "utf8", env: { LD_LIBRARY_PATH: libraries } });
  return status === 0 ? { command, libraries } : `it does not run: ${stderr}`;
}

/** Starts HAProxy in front of servers on this machine. It polls their `/ready` twice a second. */
async function startHaproxy(
  { command, libraries }: { readonly command: string; readonly libraries: string },
  ports: readonly number[],
  folder: string,
) {
  const [port, statsPort] = [await freePort(), await freePort()];
  const file = join(folder, "haproxy.cfg");
  const servers = ports.map((one) => `  server api-${one} 127.0.0.1:${one} check inter 500ms fall 1 rise 1`);
  writeFileSync(
    file,
    `defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
listen api
  bind 127.0.0.1:${port}
  option httpchk
  http-check send meth GET uri /ready
  http-check expect status 200
${servers.join("\n")}
listen statistics
  bind 127.0.0.1:${statsPort}
  stats enable
  stats uri /
`,
  );
  const balancer = await startGuarded({
    ...{ command, args: ["-db", "-f", file], env: { LD_LIBRARY_PATH: libraries } },
  });
  /** Returns whether HAProxy routes requests to the server on this port. */
  const isUp = async (one: number): Promise<boolean> => {
    const answer = await fetch(`http://127.0.0.1:${statsPort}/;csv`).catch(() => null);
    return new RegExp(`^api,api-${one},.*,UP,`, "m").test((await answer?.text()) ?? "");
  };
  const allUp = async () => (await Promise.all(ports.map(isUp))).every(Boolean);
  if (!(await waitUntil(allUp, 30_000)) || !balancer.running())
    throw new Error(`HAProxy is not up: ${balancer.lastOutput()}`);
  return { url: `http://127.0.0.1:${port}`, isUp, stop: () => balancer.stop() };
}

const REQUESTS = 2_000;
const CLIENTS = 4;
const PAYMENTS = 20;

const folder = await folderForFile("trust-rolling-");
const stage = await forFile(startApiStage());
const ports = [await freePort(), await freePort()];
const processes = new Map<number, ApiProcess>();
const start = async (port: number) => {
  const settings = { PORT: String(port), BASE_URL: "https://trust.example", DRAIN_SECONDS: "2" };
  processes.set(port, await stage.start({ url: stage.chain.rpcUrl }, settings));
};
for (const port of ports) await start(port);

/** Restarts a process as a process manager does. */
async function restart(port: number): Promise<void> {
  const running = processes.get(port) as ApiProcess;
  process.kill(running.pid, "SIGTERM");
  expect(await running.ended).toBe(0);
  await start(port);
}

interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends one request on a new connection, without a retry. */
function ask(url: string, { method = "GET", path, headers = {}, body }: Asked): Promise<number | string> {
  return new Promise((resolve) => {
    const send = url.startsWith("https:") ? httpsRequest : httpRequest;
    const options = { method, headers, agent: false, rejectUnauthorized: false, timeout: 60_000 };
    const asking = send(url + path, options, (answer) =>
      text(answer).then(
        () => resolve(answer.statusCode ?? 0),
        (error) => resolve(String(error)),
      ),
    );
    asking.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? String(error)));
    asking.on("timeout", () => asking.destroy(new Error("no answer within a minute")));
    asking.end(body);
  });
}

const json = { "content-type": "application/json" };
const READS: readonly (Asked & { readonly expected: number })[] = [
  { path: "/board", expected: 200 },
  { method: "POST", path: "/test/basic", headers: json, body: "{}", expected: 402 },
  { path: "/cert/0123456789abcdef.json", expected: 404 },
];

/** Sends requests until there are enough and the restart is over. Returns those with a wrong response. */
async function underLoad(url: string, restarting: () => Promise<unknown>) {
  const lost: string[] = [];
  const paid: Signed[] = [];
  let sent = 0;
  let isOver = false;
  const reading = Array.from({ length: CLIENTS }, async () => {
    while (!isOver || sent < REQUESTS) {
      const one = READS[sent++ % READS.length] as (typeof READS)[number];
      const got = await ask(url, one);
      if (got !== one.expected) lost.push(`${one.method ?? "GET"} ${one.path}: ${got}`);
    }
  });
  const paying = (async () => {
    while (!isOver || paid.length < PAYMENTS) {
      const signed = await signPayment(await newPayer(stage.chain));
      const got = await ask(url, { method: "POST", path: "/test/basic", headers: v2(signed) });
      if (got !== 200) lost.push(`a payment: ${got}`);
      paid.push(signed);
    }
  })();
  await restarting();
  isOver = true;
  await Promise.all([...reading, paying]);
  return { lost, sent: sent + paid.length, paid };
}

async function expectNoneLost({ lost, sent, paid }: Awaited<ReturnType<typeof underLoad>>): Promise<void> {
  expect(lost).toEqual([]);
  expect(sent).toBeGreaterThan(REQUESTS);
  for (const signed of paid) await chargedOnce(stage.chain, signed);
}

test("The script deploy/rolling-restart.sh restarts both processes behind nginx without losing a request", async ({
  skip,
}) => {
  const nginx = findNginx(join(folder, "nginx"));
  if (typeof nginx === "string") return skip(nginx);
  const tls = join(folder, "tls");
  await mkdir(tls);
  const { cert, key } = createCertificate(tls);
  const upstream = join(folder, "api.upstream");
  writeFileSync(upstream, ports.map((port) => `server 127.0.0.1:${port};\n`).join(""));
  const tlsPort = await freePort();
  const configuration = replaced(readFileSync("deploy/nginx/trust.conf", "utf8"), {
    "listen 443 ssl;": `listen 127.0.0.1:${tlsPort} ssl;`,
    "/etc/nginx/trust/api.upstream": upstream,
    "/etc/nginx/tls/certificate.pem": cert,
    "/etc/nginx/tls/key.pem": key,
  });
  const front = await forFile(startNginx(nginx.command, () => configuration));

  // Replaces systemd: the same commands do the same to this test's processes.
  const commands: string[] = [];
  const manager = createServer(async (asked, answer) => {
    const command = await text(asked);
    commands.push(command);
    const [, port] = /^restart trust-api@(\d+)$/.exec(command) ?? [];
    if (port !== undefined) await restart(Number(port));
    else if (command === "reload nginx") front.reload();
    else answer.statusCode = 400;
    answer.end();
  }).listen(0, "127.0.0.1");
  await once(manager, "listening");
  const { port: managerPort } = manager.address() as { port: number };
  const bin = join(folder, "bin");
  await mkdir(bin);
  const systemctl = join(bin, "systemctl");
  writeFileSync(systemctl, `#!/bin/sh\nexec curl --silent --fail --data "$*" http://127.0.0.1:${managerPort}\n`);
  chmodSync(systemctl, 0o755);

  const before = new Set([...processes.values()].map(({ pid }) => pid));
  const env = { PATH: `${bin}:${process.env.PATH}`, UPSTREAM: upstream };
  const rolling = () => promisify(execFile)("deploy/rolling-restart.sh", ["systemd"], { env, timeout: 120_000 });
  await expectNoneLost(await underLoad(`https://localhost:${tlsPort}`, rolling));
  manager.close();
  expect(commands.filter((command) => command.startsWith("restart"))).toEqual(
    ports.map((port) => `restart trust-api@${port}`),
  );
  expect([...processes.values()].filter(({ pid }) => before.has(pid))).toEqual([]);
  expect(readFileSync(upstream, "utf8")).not.toContain("down");
}, 300_000);

test("A balancer that only reads /ready loses no request while both processes restart", async ({ skip }) => {
  const program = unpackHaproxy(join(folder, "haproxy"));
  if (typeof program === "string") return skip(`HAProxy: ${program}`);
  const balancer = await forFile(startHaproxy(program, ports, folder));
  const rolling = async () => {
    for (const port of ports) {
      await restart(port);
      expect(await waitUntil(() => balancer.isUp(port), 30_000)).toBe(true);
    }
  };
  await expectNoneLost(await underLoad(balancer.url, rolling));
}, 300_000);
