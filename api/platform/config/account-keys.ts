import { accountOf } from "../chain/accounts.ts";
import type { AccountKey } from "../chain/remote-signer.ts";
import type { Hex } from "../wallet.ts";
import type { Variables } from "./config.ts";

/** The accounts that sign on the chain, as prefixes of their variables' names. */
export const ACCOUNTS = ["FACILITATOR", "ARBITER", "EXAM"] as const;
export type Account = (typeof ACCOUNTS)[number];

/** The variables for their keys. Each key is given here, or is at the remote signer. */
export type GivenKeys = Pick<Variables, `${Account}_PRIVATE_KEY` | `${Account}_ADDRESS` | "SIGNER_URL">;

export const keyVariable = (name: Account) => `${name}_PRIVATE_KEY` as const;
export const addressVariable = (name: Account) => `${name}_ADDRESS` as const;

/** Returns the key or the remote key of an account; null without a key and an address. */
export function accountKeyOf(name: Account, given: GivenKeys): AccountKey | null {
  const { [keyVariable(name)]: key, [addressVariable(name)]: address, SIGNER_URL: signerUrls } = given;
  if (key !== undefined) return key as Hex;
  return address === undefined || signerUrls === undefined ? null : { address, signerUrls };
}

/** Returns the variable that gives the account, and its address in lower case; null if it is not given. */
export function givenAccount(name: Account, given: GivenKeys): { variable: string; address: string } | null {
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
