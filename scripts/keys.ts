// Generates the secrets of an installation, and lists the accounts to fund: `npm run keys -- trust.env`.
import { randomBytes } from "node:crypto";
import { appendFileSync, chmodSync, existsSync, readFileSync } from "node:fs";
import { parseArgs, parseEnv } from "node:util";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { createDemoMerchant } from "../api/escrow/demo/merchant.ts";
import { accountKey, key32 } from "../api/platform/config/values.ts";
import { MAIN_NETWORK, NETWORKS, TEST_NETWORK } from "../api/platform/networks.ts";
import type { Hex } from "../api/platform/wallet.ts";

const USAGE = `Usage: npm run keys -- <file>

Adds missing secrets to the file, which only its owner may read, and prints the accounts to fund. Existing secrets stay.`;

const { name: main, isTest } = NETWORKS[MAIN_NETWORK];
const { name: test } = NETWORKS[TEST_NETWORK];

/** Variables with 32 random bytes, and the purpose of each. */
const SECRETS = {
  SIGNING_KEY: "signs certificates, credentials, and verdicts",
  LOG_KEY: "signs the transparency log",
  SEALING_KEY: "encrypts payers' signatures in the database",
  DECOY_SEED: "derives the decoys' addresses",
} as const;

interface Account {
  /** The funds to send to it. */
  readonly funds: string;
  readonly purpose: string;
}

const ACCOUNTS = {
  FACILITATOR_PRIVATE_KEY: {
    funds: isTest ? `0.05 ETH on ${main}` : `0.02 ETH on ${main}, 0.02 ETH on ${test}`,
    purpose: "gas of settlements, about 100,000 each",
  },
  ARBITER_PRIVATE_KEY: {
    funds: `0.02 ETH on ${main}`,
    purpose: "gas of the escrow's holds, releases, and refunds, and a daily anchor of the log",
  },
  EXAM_PRIVATE_KEY: {
    funds: `50 USDC on ${main}, and no ETH`,
    purpose: "payments in exams of sellers, at most EXAM_DAILY_SPEND a day",
  },
  DEPLOYER_PRIVATE_KEY: {
    funds: `0.005 ETH on ${main}`,
    purpose:
      "gas of npm run deploy, whose --dry-run shows the amount. Delete this line afterward; no other program reads it",
  },
} as const satisfies Readonly<Record<string, Account>>;

type AccountName = keyof typeof ACCOUNTS;

const names = <Name extends string>(of: Readonly<Record<Name, unknown>>) => Object.keys(of) as Name[];

/** Returns the problems of existing secrets, one per line. */
function problemsOf(given: Readonly<Record<string, string>>): readonly string[] {
  const check = (name: string, schema: ReturnType<typeof key32> | ReturnType<typeof accountKey>) => {
    const { error } = given[name] ? schema.safeParse(given[name]) : {};
    return error ? [`${name} is wrong: ${error.issues[0]?.message}`] : [];
  };
  return [
    ...names(SECRETS).flatMap((name) => check(name, key32(`a key that ${SECRETS[name]}`))),
    ...names(ACCOUNTS).flatMap((name) => check(name, accountKey("a private key"))),
  ];
}

/** Returns the secrets and derived values, in the order of the file. Existing ones stay. */
function complete(given: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const secrets = names(SECRETS).map((name) => [name, given[name] || randomBytes(32).toString("base64url")] as const);
  const unwanted = [
    ...(given.FACILITATOR_URL ? ["FACILITATOR_PRIVATE_KEY"] : []),
    // The operator deletes it after the deployment.
    ...(given.SIGNING_KEY && !given.DEPLOYER_PRIVATE_KEY ? ["DEPLOYER_PRIVATE_KEY"] : []),
  ];
  const wanted = names(ACCOUNTS).filter((name) => !unwanted.includes(name));
  const accounts = wanted.map((name) => [name, given[name] || generatePrivateKey()] as const);
  const all: Readonly<Record<string, string>> = Object.fromEntries([...secrets, ...accounts]);
  const own = [
    privateKeyToAddress(all.EXAM_PRIVATE_KEY as Hex),
    createDemoMerchant(Buffer.from(all.DECOY_SEED ?? "", "base64url")).address,
  ];
  return {
    ...all,
    ARBITER_ADDRESS: given.ARBITER_ADDRESS || privateKeyToAddress(all.ARBITER_PRIVATE_KEY as Hex),
    OWN_ADDRESSES: given.OWN_ADDRESSES || own.join(","),
  };
}

function tell(all: Readonly<Record<string, string>>): void {
  console.log("Send to these accounts:\n");
  for (const name of names(ACCOUNTS).filter((one) => all[one] !== undefined)) {
    const { funds, purpose } = ACCOUNTS[name satisfies AccountName];
    console.log(`${privateKeyToAddress(all[name] as Hex)}  ${name.replace("_PRIVATE_KEY", "").toLowerCase()}`);
    console.log(`  ${funds}: ${purpose}`);
  }
  if (isTest) console.log("\nTest ETH and test USDC are free at faucets of Coinbase and Circle.");
  console.log(
    "\nSet PAY_TO_ADDRESS to your own account that can send USDC, and keep its key elsewhere. It needs no funds.\nBack up the file separately from the database (docs/keys.md).",
  );
}

function run(): string | null {
  const { positionals } = parseArgs({ allowPositionals: true, strict: false });
  const [file, ...more] = positionals;
  if (file === undefined || more.length > 0) return USAGE;
  const before = existsSync(file) ? readFileSync(file, "utf8") : "";
  const given = parseEnv(before) as Readonly<Record<string, string>>;
  const problems = problemsOf(given);
  if (problems.length > 0) return problems.join("\n");
  const all = complete(given);
  const added = Object.entries(all).filter(([name]) => !given[name]);
  const lines = added.map(([name, value]) => `${name}=${value}\n`);
  if (lines.length > 0)
    appendFileSync(file, `${before === "" || before.endsWith("\n") ? "" : "\n"}${lines.join("")}`, { mode: 0o600 });
  chmodSync(file, 0o600);
  console.log(
    added.length === 0
      ? `${file} has every secret.\n`
      : `Added to ${file}: ${added.map(([name]) => name).join(", ")}.\n`,
  );
  tell(all);
  return null;
}

const problem = run();
if (problem !== null) {
  console.error(problem);
  process.exitCode = 1;
}
