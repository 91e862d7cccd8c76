import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startGuarded } from "../../scripts/embedded/guarded-process.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { PROGRAM } from "./nginx.ts";
import { librariesIn, unpackDebian } from "./service/debian.ts";
import { waitUntil } from "./wait-until.ts";

/** nginx of this machine, or from Debian. A string gives the reason for its absence. */
export function findNginx(folder: string): { readonly command: string } | string {
  if (PROGRAM !== undefined) return { command: PROGRAM };
  const missing = unpackDebian(folder, ["nginx"]);
  if (missing !== null) return missing;
  const command = join(folder, "usr/sbin/nginx");
  const { status, stderr } = spawnSync(command, ["-v"], { encoding: "utf8" });
  return status === 0 ? { command } : `it does not run: ${stderr}`;
}

/** HAProxy from Debian. A string gives the reason for its absence. */
export function unpackHaproxy(folder: string): { readonly command: string; readonly libraries: string } | string {
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
export async function startHaproxy(
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
