import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Hex } from "viem";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { eventually } from "../eventually.ts";
import { bareEnvironment } from "../service/environment.ts";
import type { SaleScene } from "./sale.ts";

const PROGRAM = fileURLToPath(new URL("./merchant.ts", import.meta.url));

export interface MerchantProcess {
  readonly url: string;
  /** The number of times that it printed a line. */
  readonly count: (line: string) => number;
  /** Waits until it has printed a line. */
  readonly untilPrinted: (line: string) => Promise<void>;
  /** Kills it with SIGKILL. */
  readonly kill: () => Promise<void>;
}

/** Starts a merchant's server in a separate process. With `DATABASE_URL`, its deliveries are in PostgreSQL. */
export async function openMerchant(
  { chain, arbiter }: SaleScene,
  env: { readonly MERCHANT_PRIVATE_KEY: Hex; readonly [name: string]: string },
): Promise<MerchantProcess> {
  const port = await freePort();
  const own = { RPC_URL: chain.rpcUrl, ARBITER_URL: arbiter.url, PORT: String(port) };
  const child = spawn(process.execPath, [PROGRAM], { env: { ...bareEnvironment(), ...own, ...env } });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  const count = (line: string) => output.split("\n").filter((one) => one === line).length;
  const untilPrinted = (line: string) => eventually(() => count(line) > 0, true);
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  try {
    await untilPrinted("open");
  } catch (cause) {
    await kill();
    throw cause;
  }
  return { url: `http://127.0.0.1:${port}/haiku`, count, untilPrinted, kill };
}
