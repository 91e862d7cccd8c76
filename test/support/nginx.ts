import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { freePort } from "../../scripts/embedded/ports.ts";
import { unpackDebian } from "./service/debian.ts";
import { waitUntil } from "./wait-until.ts";

/** Finds nginx on this machine, or unpacks Debian's into `folder`. A string gives the reason for its absence. */
export function findNginx(folder: string): { readonly command: string } | string {
  const here = [...(process.env.PATH ?? "").split(":"), "/usr/sbin"]
    .map((home) => join(home, "nginx"))
    .find((file) => existsSync(file));
  if (here !== undefined) return { command: here };
  const missing = unpackDebian(folder, ["nginx"]);
  if (missing !== null) return `nginx: ${missing}`;
  const command = join(folder, "usr/sbin/nginx");
  const { status, stderr } = spawnSync(command, ["-v"], { encoding: "utf8" });
  return status === 0 ? { command } : `nginx does not run: ${stderr}`;
}

const [, CACHE = ""] =
  /^```nginx\n(.*?)^```/ms.exec(readFileSync(new URL("../../docs/log-http.md", import.meta.url), "utf8")) ?? [];

/** nginx in front of a service, configured as in the documentation. */
export const nginxCache = (command: string, serviceUrl: string) =>
  startNginx(command, (folder) =>
    replaced(CACHE, { "127.0.0.1:4020": new URL(serviceUrl).host, "/var/cache/nginx/log": join(folder, "cache") }),
  );

/** nginx with only `proxy_pass`. */
export const stockNginx = (command: string, serviceUrl: string) =>
  startNginx(command, () => `server { listen 80; location / { proxy_pass ${serviceUrl}; } }`);

/** The text with each key, which must occur once, replaced by its value. */
export function replaced(text: string, values: Readonly<Record<string, string>>): string {
  let made = text;
  for (const [from, to] of Object.entries(values)) {
    if (made.split(from).length !== 2) throw new Error(`the configuration does not have ${from} once`);
    made = made.replace(from, to);
  }
  return made;
}

/** nginx with a configuration for `http`. Its `listen 80;` becomes a free port. */
export async function startNginx(command: string, configure: (folder: string) => string) {
  const folder = await mkdtemp(join(tmpdir(), "nginx-"));
  const port = await freePort();
  const kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const temporary = kinds.map((name) => `${name}_temp_path ${folder}/${name};`);
  const http = replaced(configure(folder), { "listen 80;": `listen 127.0.0.1:${port};` });
  const user = process.getuid?.() === 0 ? "user root;" : "";
  const text = `daemon off; ${user} pid ${folder}/pid; worker_processes 2; events {}
http { access_log off; ${temporary.join(" ")}\n${http}}`;
  await writeFile(join(folder, "nginx.conf"), text);
  const child = spawn(command, ["-p", folder, "-c", join(folder, "nginx.conf"), "-e", "stderr"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let output = "";
  child.stderr.on("data", (part) => {
    output += part;
  });
  const ended = once(child, "exit");
  const url = `http://127.0.0.1:${port}`;
  const isUp = async () =>
    child.exitCode !== null || (await fetch(url, { redirect: "manual" }).catch(() => null)) !== null;
  await waitUntil(isUp, 30_000, 20);
  if (child.exitCode !== null) throw new Error(`nginx ended: ${output}`);
  return {
    url,
    /** Reloads the configuration without closing connections that have a request. */
    reload: () => void child.kill("SIGHUP"),
    async stop() {
      child.kill("SIGTERM");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A response, and the bytes of its status line and headers as the server sent them. */
export interface Measured {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly headerBytes: number;
}

/** nginx reads a response's headers into 4 KB by default and returns 502 for larger ones. */
export const MOST_HEADER_BYTES = 4_000;

/** The size of these headers in bytes, with the ones that Node's server adds to each response. */
export const headerBytesOf = (headers: Headers): number =>
  [...headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0) + ADDED_BY_NODE;

/** Status line, date, connection, keep-alive, content-length, x-powered-by. */
const ADDED_BY_NODE = 200;

/** Sends a request and measures the response's header block. */
export function measured(
  url: string,
  { method = "GET", headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Measured> {
  return new Promise((resolve, reject) => {
    const asking = request(url, { method, headers }, async (answer) => {
      const { statusCode: status = 0, statusMessage = "", rawHeaders } = answer;
      const pairs = rawHeaders.flatMap((name, at) => (at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? ""] as const] : []));
      const lines = [`HTTP/1.1 ${status} ${statusMessage}`, ...pairs.map(([name, value]) => `${name}: ${value}`), ""];
      const headerBytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line, "latin1") + 2, 0);
      resolve({ status, headers: new Headers(pairs.map(([...pair]) => pair)), text: await text(answer), headerBytes });
    });
    asking.on("error", reject).end(body);
  });
}
