// cspell:ignore GOBIN dklen kdfparams cipherparams configdir lightkdf bootwarn ipcdisable auditlog
import { spawn, spawnSync } from "node:child_process";
import { createCipheriv, randomBytes, scryptSync } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { concat, type Hex, keccak256 } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { waitUntil } from "../wait-until.ts";

const VERSION = "v1.16.9";
const CACHE = fileURLToPath(new URL(`../../../node_modules/.cache/clef-${VERSION}`, import.meta.url));
const PASSWORD = "a password of the test";

/** The path of go-ethereum's clef, built once per machine, or the reason for its absence. */
export function buildClef(): { readonly path: string } | { readonly missing: string } {
  const path = join(CACHE, "clef");
  if (existsSync(path)) return { path };
  mkdirSync(CACHE, { recursive: true });
  const env = { ...process.env, GOBIN: CACHE };
  const { error, status, stderr } = spawnSync(
    "go",
    ["install", `github.com/ethereum/go-ethereum/cmd/clef@${VERSION}`],
    {
      ...{ env, encoding: "utf8", timeout: 1_500_000 },
    },
  );
  if (error) return { missing: `there is no go (${error.message})` };
  return status === 0 ? { path } : { missing: `it cannot be built: ${stderr.trim().split("\n").at(-1)}` };
}

/** A key in geth's encrypted form (Web3 Secret Storage, version 3). */
function keyFile(privateKey: Hex): string {
  const [salt, iv] = [randomBytes(32), randomBytes(16)];
  const kdfparams = { n: 4096, r: 8, p: 6, dklen: 32, salt: salt.toString("hex") };
  const derived = scryptSync(PASSWORD, salt, 32, { N: kdfparams.n, r: kdfparams.r, p: kdfparams.p });
  const cipher = createCipheriv("aes-128-ctr", derived.subarray(0, 16), iv);
  const ciphertext = Buffer.concat([cipher.update(Buffer.from(privateKey.slice(2), "hex")), cipher.final()]);
  const mac = keccak256(concat([new Uint8Array(derived.subarray(16, 32)), new Uint8Array(ciphertext)])).slice(2);
  const crypto = {
    ...{ cipher: "aes-128-ctr", ciphertext: ciphertext.toString("hex"), cipherparams: { iv: iv.toString("hex") } },
    ...{ kdf: "scrypt", kdfparams, mac },
  };
  const address = privateKeyToAddress(privateKey).slice(2).toLowerCase();
  return JSON.stringify({ version: 3, id: crypto.cipherparams.iv, address, crypto });
}

interface ClefPlan {
  readonly chainId: number;
  readonly keys: readonly Hex[];
  /** Default: a free one. */
  readonly port?: number;
}

/** Starts clef with these keys for one chain. The test is its user interface and approves every request. */
export async function startClef(path: string, folder: string, plan: ClefPlan) {
  const keystore = join(folder, "keystore");
  mkdirSync(keystore, { recursive: true, mode: 0o700 });
  for (const [at, key] of plan.keys.entries())
    writeFileSync(join(keystore, `key-${at}`), keyFile(key), { mode: 0o600 });
  const port = plan.port ?? (await freePort());
  const args = [
    ...["--keystore", keystore, "--configdir", join(folder, "config"), "--chainid", String(plan.chainId)],
    ...["--lightkdf", "--suppress-bootwarn", "--advanced", "--stdio-ui", "--ipcdisable", "--auditlog", ""],
    ...["--http", "--http.addr", "127.0.0.1", "--http.port", String(port)],
  ];
  const child = spawn(path, args, { stdio: ["pipe", "pipe", "pipe"] });
  let output = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-4_000);
  });
  const asked: string[] = [];
  createInterface(child.stdout).on("line", (line) => {
    const { id, method, params } = JSON.parse(line) as {
      id?: number;
      method: string;
      params: [{ transaction?: object }];
    };
    asked.push(method);
    if (id === undefined) return;
    const result =
      method === "ui_approveTx"
        ? { approved: true, transaction: params[0].transaction }
        : method === "ui_onInputRequired"
          ? { text: PASSWORD }
          : { approved: true };
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
  });
  const url = `http://127.0.0.1:${port}`;
  const version = { method: "POST", headers: { "content-type": "application/json" } };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "account_version", params: [] });
  const answers = () =>
    fetch(url, { ...version, body }).then(
      ({ ok }) => ok,
      () => false,
    );
  if (!(await waitUntil(answers, 30_000))) throw new Error(`clef did not start: ${output}`);
  return {
    url,
    asked,
    stop: async () => {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      if (child.exitCode !== null) return;
      child.kill("SIGKILL");
      await ended;
    },
  };
}
