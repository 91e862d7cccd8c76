import { bytesToHex } from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { accountOf } from "../chain/accounts.ts";
import type { AccountKey } from "../chain/remote-signer.ts";
import { NETWORKS } from "../networks.ts";
import type { Hex } from "../wallet.ts";
import type { Variables } from "./config.ts";
import { isLoopback } from "./values.ts";

/** The accounts that sign on the chain, as prefixes of their variables' names. */
const ACCOUNTS = ["FACILITATOR", "ARBITER", "EXAM"] as const;
type Account = (typeof ACCOUNTS)[number];

/** The variables for their keys. Each key is given here, or is at the remote signer. */
type GivenKeys = Pick<Variables, `${Account}_PRIVATE_KEY` | `${Account}_ADDRESS` | "SIGNER_URL">;

const keyVariable = (name: Account) => `${name}_PRIVATE_KEY` as const;
const addressVariable = (name: Account) => `${name}_ADDRESS` as const;

/** Returns the key or the remote key of an account; null without a key and an address. */
export function accountKeyOf(name: Account, given: GivenKeys): AccountKey | null {
  const { [keyVariable(name)]: key, [addressVariable(name)]: address, SIGNER_URL: signerUrls } = given;
  if (key !== undefined) return key as Hex;
  return address === undefined || signerUrls === undefined ? null : { address, signerUrls };
}

/** Returns the variable that gives the account, and its address in lower case; null if it is not given. */
function givenAccount(name: Account, given: GivenKeys): { variable: string; address: string } | null {
  const { [keyVariable(name)]: key, [addressVariable(name)]: address } = given;
  if (key !== undefined) return { variable: keyVariable(name), address: accountOf(key as Hex) };
  return address === undefined ? null : { variable: addressVariable(name), address };
}

/**
 * Returns one line for each account without a key or with a contradicting address, and for a signer that no account
 * uses.
 */
export function accountKeyProblems(given: GivenKeys): readonly string[] {
  const named = ACCOUNTS.filter((name) => given[addressVariable(name)] !== undefined);
  const remote = named.filter((name) => given[keyVariable(name)] === undefined);
  const differing = named.filter((name) => givenAccount(name, given)?.address !== given[addressVariable(name)]);
  const problems = differing.map(
    (name) =>
      `${addressVariable(name)} is wrong: not the address of ${keyVariable(name)}; expected that, or only one of them.`,
  );
  if (given.SIGNER_URL === undefined)
    problems.push(
      ...remote.map(
        (name) => `SIGNER_URL is missing: ${addressVariable(name)} needs a remote signer that has its key.`,
      ),
    );
  else if (remote.length === 0) problems.push(SIGNS_FOR_NONE);
  return problems;
}

const SIGNS_FOR_NONE =
  "SIGNER_URL is wrong: no account needs it; expected FACILITATOR_ADDRESS, ARBITER_ADDRESS, or EXAM_ADDRESS in place of a private key.";

const KEYS = ACCOUNTS.map(keyVariable);
const SECRETS = ["SIGNING_KEY", "LOG_KEY", "SEALING_KEY", "DECOY_SEED"] as const;

/**
 * Returns mistakes that would later cost money or a reputation, such as a receiver that cannot receive, one key in two
 * roles, a key that anyone can look up, or a missing public address. There is one line for each, named after the
 * variable, and no secret is repeated.
 */
export function roleProblems(env: Variables): readonly string[] {
  return [
    ...(env.BASE_URL === undefined && !isLoopback(env.HOST) ? [NO_ORIGIN] : []),
    ...receiverProblems(env),
    ...sharedKeyProblems(env),
    ...(isLocal(env) ? [] : publishedKeyProblems(env)),
  ];
}

/** Whether only programs on this machine can reach the service under its published address. */
const isLocal = ({ BASE_URL }: Variables): boolean => BASE_URL === undefined || isLoopback(new URL(BASE_URL).hostname);

function receiverProblems(env: Variables): readonly string[] {
  const receiver = env.PAY_TO_ADDRESS.toLowerCase();
  const contracts = [
    ...Object.values(NETWORKS).map(({ usdc, name }) => [usdc.address, `the USDC contract on ${name}`] as const),
    ...env.ESCROW_ADDRESSES.map((address) => [address, "one of ESCROW_ADDRESSES"] as const),
    [env.EVALUATOR_ADDRESS?.toLowerCase(), "EVALUATOR_ADDRESS"] as const,
  ];
  const found = contracts.find(([address]) => address === receiver);
  if (found) return [`PAY_TO_ADDRESS is wrong: ${found[1]}; expected an account of yours that can send USDC.`];
  const owner = ACCOUNTS.map((name) => givenAccount(name, env)).find((one) => one?.address === receiver);
  if (owner)
    return [
      `PAY_TO_ADDRESS is wrong: the address of ${owner.variable}; expected a separate account, so that no process holds the key to the revenue.`,
    ];
  return [];
}

/** Checks that roles do not share a key, so that a stolen key gives away one role only. */
function sharedKeyProblems(env: Variables): readonly string[] {
  const seen = new Map<string, string>();
  const problems: string[] = [];
  const note = (name: string, identity: string, kind: "key" | "account"): void => {
    const other = seen.get(identity);
    if (other === undefined) seen.set(identity, name);
    else problems.push(`${name} is wrong: the same ${kind} as ${other}; expected a ${kind} for this role alone.`);
  };
  const accounts = ACCOUNTS.map((name) => givenAccount(name, env)).filter((one) => one !== null);
  // If both keys are here, a more specific line follows.
  if (accounts.some(({ variable }) => variable.endsWith("_ADDRESS")))
    for (const { variable, address } of accounts) note(variable, address, "account");
  for (const name of [...KEYS, ...SECRETS]) {
    const key = hexOf(env[name]);
    if (key !== null) note(name, key, "key");
  }
  return problems;
}

function publishedKeyProblems(env: Variables): readonly string[] {
  const keys = [...KEYS, ...SECRETS].filter((name) => isPublishedKey(hexOf(env[name])));
  const addresses = [...ACCOUNTS.map(addressVariable), "PAY_TO_ADDRESS" as const];
  return [
    ...keys.map((name) => `${name} is wrong: a development key that anyone can look up; expected 32 random bytes.`),
    ...addresses
      .filter((name) => isPublishedKey(env[name] ?? null))
      .map(
        (name) =>
          `${name} is wrong: its key is a development key that anyone can look up; expected an account of yours.`,
      ),
  ];
}

/** Returns a key in either spelling, 0x and hex or base64url, as lower-case hex. */
function hexOf(key: string | undefined): Hex | null {
  if (key === undefined) return null;
  return (key.startsWith("0x") ? key.toLowerCase() : `0x${Buffer.from(key, "base64url").toString("hex")}`) as Hex;
}

const NO_ORIGIN =
  "BASE_URL is missing: the address under which the service is published, like https://trust.example. It is part of every signed document, so only a service with a loopback HOST, like HOST=localhost, may go without one.";

/** The development mnemonics of Foundry and Hardhat, Ganache, and Truffle, each with its number of default accounts. */
const MNEMONICS = [
  "test test test test test test test test test test test junk",
  "myth like bonus scare over problem client lizard pioneer submit female collect",
  "candy maple cake sugar pudding cream honey rich smooth crumble sweet treat",
];
const ACCOUNTS_EACH = 20;

let published: ReadonlySet<string> | null = null;

/** Whether development tools print this private key, or the key of this address. */
const isPublishedKey = (keyOrAddress: string | null): boolean =>
  keyOrAddress !== null && developmentKeys().has(keyOrAddress.toLowerCase());

/** Derives the keys on first use, because that takes longer than all other checks together. */
function developmentKeys(): ReadonlySet<string> {
  published ??= new Set(
    MNEMONICS.flatMap((mnemonic) =>
      Array.from({ length: ACCOUNTS_EACH }, (_, addressIndex) => {
        const account = mnemonicToAccount(mnemonic, { addressIndex });
        const key = account.getHdKey().privateKey;
        return key === null ? [] : [bytesToHex(key), account.address.toLowerCase()];
      }).flat(),
    ),
  );
  return published;
}
