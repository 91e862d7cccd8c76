import { join } from "node:path";
import { setInterval } from "node:timers";
import type { Address } from "viem";
import { COMPILE_CACHE } from "./embedded/compile-cache.ts";
import { type DataDirectory, DirectoryInUseError, takeDataDirectory } from "./embedded/data-directory.ts";
import { DEMO_WALLET, payAsDemoAgent } from "./embedded/demo-agent.ts";
import { deploymentTargets, localContracts } from "./embedded/deployments.ts";
import { devAccount, privateKeyOf } from "./embedded/dev-accounts.ts";
import { loadKeys } from "./embedded/keys.ts";
import { demandBase, demandFreePorts, readSettings, SettingError, type StartSettings } from "./embedded/settings.ts";
import { createStack } from "./embedded/stack.ts";

interface BannerFacts {
  readonly settings: StartSettings;
  readonly baseUrl: string;
  readonly certificateUrl: string;
  readonly smartWallet: Address;
}

/** Renders the URLs, and an account that can pay, for a developer to get started. */
function renderBanner({ settings, baseUrl, certificateUrl, smartWallet }: BannerFacts): string {
  const payer = devAccount(0);
  return `
  Home                 ${baseUrl}/
  Certificate          ${certificateUrl}
                       (the demo agent just bought it over x402)
  Its wallet           ${baseUrl}/verify?wallet=${DEMO_WALLET}
  Status               ${baseUrl}/status
  Rehearsals           ${baseUrl}/docs#behavioral-tests
                       (POST /rehearsal/scam/start, paid on the local Base Sepolia; nothing is recorded)
  Base RPC             http://127.0.0.1:${settings.rpcPorts["eip155:8453"]}  (chain id 8453)
  Base Sepolia RPC     http://127.0.0.1:${settings.rpcPorts["eip155:84532"]}  (chain id 84532)
  Data and logs        ${settings.dataDirectory}

  An account to pay with, funded with 10,000 USDC and 100 ETH on both chains:
  Address              ${payer.address}
  Private key          ${privateKeyOf(payer)}
  Smart wallet         ${smartWallet}  (ERC-1271, owned by ${devAccount(8).address})

  WARNING: these are local chains, but they use the real chain ids, 8453 and 84532. Anything you sign here is
  valid on the real chains. Never sign here with a key that holds real money.
`;
}

// Inherited by the services.
process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;
const began = performance.now();
const tell = (line: string) => console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${line}`);

/** Claims the folder and the ports, or ends the process with one line that names the setting to change. */
async function claim(): Promise<{ settings: StartSettings; directory: DataDirectory }> {
  try {
    demandBase(process.env);
    const settings = await readSettings(process.env);
    const directory = takeDataDirectory(settings.dataDirectory);
    await demandFreePorts(settings);
    return { settings, directory };
  } catch (error) {
    if (!(error instanceof SettingError || error instanceof DirectoryInUseError)) throw error;
    console.error(error.message);
    process.exit(1);
  }
}

async function start(): Promise<void> {
  const { settings, directory } = await claim();
  tell(`Starting from ${directory.path}`);
  const found = directory.open();
  if (found === "deleted")
    tell("The last run did not stop cleanly. Deleting its local chains, database, and keys, and creating new ones.");
  let ending = false;
  const end = async (exitCode: number, reason: string): Promise<void> => {
    if (ending) return;
    ending = true;
    (exitCode === 0 ? console.log : console.error)(reason);
    await stack.stop();
    directory.release();
    process.exit(exitCode);
  };
  const fail = (error: unknown) => end(1, error instanceof Error ? error.message : String(error));
  const stack = createStack({
    settings,
    directory,
    keys: loadKeys(directory.path),
    isResumed: found === "resumed",
    tell,
    onLoss: (reason) => fail(reason),
  });
  // A terminal's Ctrl-C also reaches npm, which passes it on, so ignore a second signal.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => end(0, "Stopping …"));
  endWithNpm(() => end(0, "npm has exited. Stopping …"));
  try {
    await stack.start();
    await welcome(settings);
  } catch (error) {
    fail(error);
  }
}

async function welcome(settings: StartSettings): Promise<void> {
  const baseUrl = `http://localhost:${settings.port}`;
  const certificateUrl = await payAsDemoAgent(baseUrl);
  tell("The demo agent has paid and has a certificate");
  const [base] = deploymentTargets({
    base: settings.rpcPorts["eip155:8453"],
    baseSepolia: settings.rpcPorts["eip155:84532"],
  });
  const { wallet } = localContracts(join(settings.dataDirectory, "ignition"), base);
  console.log(renderBanner({ settings, baseUrl, certificateUrl, smartWallet: wallet }));
  console.log(`ready ${baseUrl}`);
}

/** An `npm start` killed with -9 cannot forward a signal, but its children get a new parent. */
function endWithNpm(callback: () => void): void {
  const npm = process.ppid;
  if (process.env.npm_lifecycle_event !== "start") return;
  setInterval(() => process.ppid !== npm && callback(), 500).unref();
}

await start();
