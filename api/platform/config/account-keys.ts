import type { AccountKey } from "../chain/remote-signer.ts";
import type { Address, Hex } from "../wallet.ts";
import { addressOfKey } from "./published-keys.ts";

/** The accounts that sign on the chain, by the beginning of their variables' names. */
export const ACCOUNTS = ["FACILITATOR", "ARBITER", "EXAM"] as const;
export type Account = (typeof ACCOUNTS)[number];

/** What was given of their keys: each is here, or at the remote signer. */
export type GivenKeys = {
  readonly [Name in `${Account}_PRIVATE_KEY` | `${Account}_ADDRESS`]?: string | undefined;
} & { readonly SIGNER_URL?: readonly string[] | undefined };

export const keyVariable = (name: Account) => `${name}_PRIVATE_KEY` as const;
export const addressVariable = (name: Account) => `${name}_ADDRESS` as const;

/** Null if the account has neither a key nor an address. */
export function accountKeyOf(name: Account, given: GivenKeys): AccountKey | null {
  const { [keyVariable(name)]: key, [addressVariable(name)]: address, SIGNER_URL: signerUrls } = given;
  if (key !== undefined) return key as Hex;
  return address === undefined || signerUrls === undefined ? null : { address: address as Address, signerUrls };
}

/** What names the account, and its address in lower case; null if nothing does. */
export function givenAccount(name: Account, given: GivenKeys): { variable: string; address: string } | null {
  const { [keyVariable(name)]: key, [addressVariable(name)]: address } = given;
  if (key !== undefined) return { variable: keyVariable(name), address: addressOfKey(key) };
  return address === undefined ? null : { variable: addressVariable(name), address };
}

/** One line for each account whose key is nowhere, or whose address is another one, and for a signer that nothing uses. */
export function accountKeyProblems(given: GivenKeys): readonly string[] {
  const named = ACCOUNTS.filter((name) => given[addressVariable(name)] !== undefined);
  const remote = named.filter((name) => given[keyVariable(name)] === undefined);
  const differing = named.filter((name) => givenAccount(name, given)?.address !== given[addressVariable(name)]);
  const problems = differing.map(
    (name) =>
      `${addressVariable(name)} is wrong: it is not the address of ${keyVariable(name)}; expected that, or only one of them.`,
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
