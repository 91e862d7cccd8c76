import { pino } from "pino";
import { formatEther } from "viem";
import { openContracts } from "../../api/escrow/index.ts";
import { readAtBlock } from "../../api/platform/chain/read-at-block.ts";
import { type AccountKey, accountAddress } from "../../api/platform/chain/remote-signer.ts";
import { usdcCalls } from "../../api/platform/chain/usdc.ts";
import type { Config } from "../../api/platform/config/config.ts";
import { connect } from "../../api/platform/db/connection.ts";
import { formatUsd } from "../../api/platform/money.ts";
import { MAIN_NETWORK, NETWORKS, type Network, TEST_NETWORK } from "../../api/platform/networks.ts";
import { createPlatform } from "../../api/platform/platform.ts";
import type { Platform } from "../../api/platform/slice.ts";
import { causeOf, type Finding, fail, note, ok } from "./finding.ts";

/** The threshold of the alert in docs/operations.md. */
const LOW_WEI = 10n ** 15n;
/** The funds for one exam and its payments. */
const LOW_EXAM_USDC = 5_000_000n;

/** Inspects the accounts that pay, the receiving address, and the escrow contracts. */
export async function inspectAccounts(config: Config): Promise<readonly Finding[]> {
  const pool = connect(config.databaseUrl, 1);
  try {
    const platform = await createPlatform(config, pool, { log: pino({ level: "silent" }) });
    const found = await Promise.all([
      ...senders(config).map((sender) => inspectSender(platform, sender)),
      inspectFacilitator(config),
      inspectUsdc(platform, config),
      inspectContracts(platform, config),
    ]);
    return found.flat();
  } finally {
    await pool.end();
  }
}

interface Sender {
  readonly account: "FACILITATOR" | "ARBITER";
  readonly key: AccountKey;
  readonly network: Network;
}

const senders = ({ facilitator, arbiterKey, escrowAddresses, erc8004 }: Config): readonly Sender[] => [
  ...("remote" in facilitator
    ? []
    : [...new Set([MAIN_NETWORK, TEST_NETWORK])].map((network) => ({
        account: "FACILITATOR" as const,
        key: facilitator.key,
        network,
      }))),
  ...(escrowAddresses.length === 0 && erc8004 === null
    ? []
    : [{ account: "ARBITER" as const, key: arbiterKey, network: MAIN_NETWORK }]),
];

/** Returns the variable of the account. The key is in it, or at a remote signer. */
const variableOf = (account: string, key: AccountKey): string =>
  `${account}_${typeof key === "string" ? "PRIVATE_KEY" : "ADDRESS"}`;

async function inspectSender({ chains }: Platform, { account, key, network }: Sender): Promise<readonly Finding[]> {
  const variable = variableOf(account, key);
  const address = accountAddress(key);
  const { name } = NETWORKS[network];
  const balance = await chains[network].client.getBalance({ address }).catch(() => null);
  if (balance === null) return [fail(variable, `the balance of ${address} on ${name} cannot be read`)];
  const holds = `${address} holds ${formatEther(balance)} ETH on ${name}`;
  return [
    balance < LOW_WEI ? fail(variable, `${holds}: send it ETH for gas, 0.02 to start with`) : ok(variable, holds),
  ];
}

/** A remote facilitator must settle on the main network. */
async function inspectFacilitator({ facilitator }: Config): Promise<readonly Finding[]> {
  if (!("remote" in facilitator)) return [];
  const subject = "FACILITATOR_URL";
  try {
    const response = await fetch(`${facilitator.remote.replace(/\/$/, "")}/supported`, {
      redirect: "error",
      signal: AbortSignal.timeout(10_000),
    });
    const { kinds = [] } = (await response.json()) as { readonly kinds?: readonly { readonly network?: string }[] };
    const networks: readonly string[] = [MAIN_NETWORK, NETWORKS[MAIN_NETWORK].key];
    const settles = kinds.some(({ network }) => network !== undefined && networks.includes(network));
    return settles
      ? [ok(subject, `settles on ${NETWORKS[MAIN_NETWORK].name}`)]
      : [
          fail(
            subject,
            `does not list ${MAIN_NETWORK} at /supported (status ${response.status}): use one that settles there`,
          ),
        ];
  } catch (error) {
    return [fail(subject, `cannot be read (${causeOf(error)}): check the URL and FACILITATOR_AUTH`)];
  }
}

async function inspectUsdc({ chains }: Platform, { payTo, exams }: Config): Promise<readonly Finding[]> {
  const { client } = chains[MAIN_NETWORK];
  const { name, usdc } = NETWORKS[MAIN_NETWORK];
  const calls = usdcCalls(usdc.address);
  const payer = exams === null ? null : accountAddress(exams.key);
  const [paused, blacklisted, balance] = [
    calls.isPaused(),
    calls.isBlacklisted(payTo),
    calls.balanceOf(payer ?? payTo),
  ];
  const read = await readAtBlock(client, { calls: [paused, blacklisted, balance] }).catch(() => null);
  if (read === null) return [fail("PAY_TO_ADDRESS", `USDC on ${name} cannot be read: see the nodes above`)];
  const held = `${payer} holds ${formatUsd(read.of(balance))} USDC on ${name}`;
  return [
    ...(read.of(paused) ? [fail("USDC", `is paused on ${name}: no payment settles until Circle resumes it`)] : []),
    read.of(blacklisted)
      ? fail("PAY_TO_ADDRESS", `USDC refuses transfers to ${payTo}: use an account that is not blacklisted`)
      : ok("PAY_TO_ADDRESS", `${payTo} can receive USDC on ${name}`),
    ...(payer === null
      ? [note("EXAM_PRIVATE_KEY", "is missing: exams of sellers are not sold")]
      : [
          read.of(balance) < LOW_EXAM_USDC
            ? fail("EXAM_PRIVATE_KEY", `${held}: send it USDC, 50 to start with`)
            : ok("EXAM_PRIVATE_KEY", held),
        ]),
  ];
}

async function inspectContracts(platform: Platform, config: Config): Promise<readonly Finding[]> {
  const subject = "ESCROW_ADDRESSES";
  if (config.escrowAddresses.length === 0)
    return [note(subject, "is missing: the escrow is closed. Run npm run deploy, and paste what it prints")];
  try {
    const { contracts, isUnread } = await openContracts(platform, config);
    return isUnread
      ? [fail(subject, "the contracts cannot be read: see the nodes above")]
      : [ok(subject, `${contracts.length} contracts, all with this arbiter`)];
  } catch (error) {
    return [fail(subject, `${causeOf(error)}: run npm run deploy with this environment, and paste what it prints`)];
  }
}
