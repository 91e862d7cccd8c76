import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../scripts/embedded/ports.ts";
import { waitUntil } from "../../scripts/embedded/wait-until.ts";

const PROGRAM = [...(process.env.PATH ?? "").split(":"), "/usr/sbin"]
  .map((folder) => join(folder, "nginx"))
  .find((file) => existsSync(file));

/** Whether this machine has nginx. */
export const HAS_NGINX = PROGRAM !== undefined;

const [, CACHE = ""] =
  /^```nginx\n(.*?)^```/ms.exec(readFileSync(new URL("../../docs/log-http.md", import.meta.url), "utf8")) ?? [];

/** nginx as the documents configure it, in front of a service. */
export const nginxCache = (serviceUrl: string) =>
  startNginx((folder) =>
    replaced(CACHE, { "127.0.0.1:4020": new URL(serviceUrl).host, "/var/cache/nginx/log": join(folder, "cache") }),
  );

/** nginx with nothing but `proxy_pass`. */
export const stockNginx = (serviceUrl: string) =>
  startNginx(() => `server { listen 80; location / { proxy_pass ${serviceUrl}; } }`);

function replaced(text: string, values: Readonly<Record<string, string>>): string {
  let made = text;
  for (const [from, to] of Object.entries(values)) {
    if (made.split(from).length !== 2) throw new Error(`the documents do not name ${from} once`);
    made = made.replace(from, to);
  }
  return made;
}

async function startNginx(configure: (folder: string) => string) {
  const folder = await mkdtemp(join(tmpdir(), "nginx-"));
  const port = await freePort();
  const kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  const temporary = kinds.map((name) => `${name}_temp_path ${folder}/${name};`);
  const http = replaced(configure(folder), { "listen 80;": `listen 127.0.0.1:${port};` });
  const user = process.getuid?.() === 0 ? "user root;" : "";
  const text = `daemon off; ${user} pid ${folder}/pid; worker_processes 2; events {}
http { access_log off; ${temporary.join(" ")}\n${http}}`;
  await writeFile(join(folder, "nginx.conf"), text);
  const child = spawn(PROGRAM ?? "", ["-p", folder, "-c", join(folder, "nginx.conf"), "-e", "stderr"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (part) => {
    said += part;
  });
  const ended = once(child, "exit");
  const url = `http://127.0.0.1:${port}`;
  const isUp = async () => child.exitCode !== null || (await fetch(`${url}/`).catch(() => null)) !== null;
  await waitUntil(isUp, 30_000, 20);
  if (child.exitCode !== null) throw new Error(`nginx ended: ${said}`);
  return {
    url,
    async stop() {
      child.kill("SIGTERM");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
