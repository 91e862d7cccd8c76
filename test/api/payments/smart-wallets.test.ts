import type { Address, Hex, LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { MULTICALL3 } from "../../../api/platform/chain/read-at-block.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import {
  expectNoSignatureAnywhere,
  expectPaymentRequired,
  expectProblem,
} from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { deployWallet } from "../../support/payments/wallets.ts";
import { startService } from "../../support/service/service.ts";

const MAGIC = `1626ba7e${"00".repeat(28)}`;
/** Contracts in a few bytes of machine code: what they answer to `isValidSignature`, whatever they are asked. */
const ANSWERS = {
  "the magic value": `0x7f${MAGIC}60005260206000f3`,
  nothing: "0x00",
  "another value": `0x7f${"ff".repeat(4)}${"00".repeat(28)}60005260206000f3`,
  "an endless loop": "0x5b600056",
} as const satisfies Record<string, Hex>;

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const basic = () => `${service.url}/test/basic`;
/** The owner's smart wallet, with 10 USDC. */
async function deploy(owner: Address): Promise<Address> {
  const { address } = await deployWallet(chain, owner);
  await chain.fund(address, 10_000_000n);
  return address;
}

const newOwner = (): LocalAccount => privateKeyToAccount(generatePrivateKey());

/** An account whose code is this, with 10 USDC. */
async function contractAccount(code: Hex): Promise<Address> {
  const { address } = newOwner();
  await chain.client.setCode({ address, bytecode: code });
  await chain.fund(address, 10_000_000n);
  return address;
}

describe("a smart wallet", () => {
  test("pays by its owner's signature, and is certified itself", async () => {
    const owner = newOwner();
    const wallet = await deploy(owner.address);
    const signed = await signPayment(owner, { from: wallet });
    const first = await post(basic(), v2(signed));
    expect(first.status).toBe(200);
    expect(first.body).toMatchObject({ verdict: "pass", wallet: wallet.toLowerCase() });
    const again = await post(basic(), v2(signed));
    expect([again.text, again.headers.get("x-idempotent-replay")]).toEqual([first.text, "true"]);
    await chargedOnce(chain, signed);
  });

  test("may sign in its own way: a signature of 2 KiB", async () => {
    const wallet = await contractAccount(ANSWERS["the magic value"]);
    const signed = await signPayment(newOwner(), { from: wallet });
    const long = { ...signed, signature: `0x${"a5".repeat(2_048)}` as Hex };
    expect((await post(basic(), v2(long))).status).toBe(200);
    await chargedOnce(chain, signed);
  });

  test("is not charged on the signature of somebody who is not its owner", async () => {
    const owner = newOwner();
    const wallet = await deploy(owner.address);
    const forged = await signPayment(newOwner(), { from: wallet });
    expect(expectPaymentRequired(await post(basic(), v2(forged)))).toMatch(/is not the payer's/);
    await nothingCharged(chain, wallet);
  });

  test("does not show its result to a wrong signature", async () => {
    const owner = newOwner();
    const signed = await signPayment(owner, { from: await deploy(owner.address) });
    const first = await post(basic(), v2(signed));
    expect(first.status).toBe(200);
    const forged = await signPayment(newOwner(), signed.authorization);
    const answer = await post(basic(), v2(forged));
    expectProblem(answer, 400, "malformed_request");
    expect(answer.text).not.toContain(String(first.body.id));
    await chargedOnce(chain, signed);
  });
});

describe("an account that delegates to a smart wallet (EIP-7702)", () => {
  const delegate = (account: Address, wallet: Address) =>
    chain.client.setCode({ address: account, bytecode: `0xef0100${wallet.slice(2)}` });

  test("pays by its own signature when that wallet takes it", async () => {
    const account = await newPayer(chain);
    await delegate(account.address, await deploy(account.address));
    const signed = await signPayment(account);
    expect((await post(basic(), v2(signed))).status).toBe(200);
    await chargedOnce(chain, signed);
  });

  test("is refused when that wallet does not: USDC asks the wallet, not the key", async () => {
    const account = await newPayer(chain);
    await delegate(account.address, await deploy(newOwner().address));
    const why = expectPaymentRequired(await post(basic(), v2(await signPayment(account))));
    expect(why).toMatch(/rejects the signature/);
    await nothingCharged(chain, account);
  });
});

describe("a contract that is not a wallet is refused", () => {
  const others = Object.entries(ANSWERS).filter(([answer]) => answer !== "the magic value");
  test.each(others)("when it answers %s", async (_, code) => {
    const contract = await contractAccount(code);
    const signed = await signPayment(newOwner(), { from: contract });
    expect(expectPaymentRequired(await post(basic(), v2(signed)))).toMatch(/is not the payer's/);
    await nothingCharged(chain, contract);
  });

  test("when it has no isValidSignature", async () => {
    const signed = await signPayment(newOwner(), { from: MULTICALL3 });
    expect(expectPaymentRequired(await post(basic(), v2(signed)))).toMatch(/is not the payer's/);
    await nothingCharged(chain, MULTICALL3);
  });
});

test("no answer, log line or row of the database holds a signature in clear", () => expectNoSignatureAnywhere(service));
