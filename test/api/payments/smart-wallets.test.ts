import { readFileSync } from "node:fs";
import { type Address, type Hex, type LocalAccount, serializeErc6492Signature } from "viem";
import { type SmartAccount, toCoinbaseSmartAccount } from "viem/account-abstraction";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { MULTICALL3 } from "../../../api/platform/chain/read-at-block.ts";
import { STATEMENT_PRICE } from "../../../api/settlement-status/statement-request.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { openOperator, stockFetch } from "../../support/escrow/auth-capture.ts";
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
import { pageIn, purchasesUrl, signInAt } from "../../support/purchases/sign-in.ts";
import { startService, type TestService } from "../../support/service/service.ts";
import { wire } from "../../support/settlement-status/statements.ts";

const MAGIC = `1626ba7e${"00".repeat(28)}`;
/** Bytecode of contracts, by what they return from `isValidSignature` for any input. */
const ANSWERS = {
  "the magic value": `0x7f${MAGIC}60005260206000f3`,
  nothing: "0x00",
  "another value": `0x7f${"ff".repeat(4)}${"00".repeat(28)}60005260206000f3`,
  "an endless loop": "0x5b600056",
} as const satisfies Record<string, Hex>;

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const basic = () => `${service.url}/test/basic`;
/** Deploys the owner's smart wallet with 10 USDC. */
async function deploy(owner: Address): Promise<Address> {
  const { address } = await deployWallet(chain, owner);
  await chain.fund(address, 10_000_000n);
  return address;
}

const newOwner = (): LocalAccount => privateKeyToAccount(generatePrivateKey());

/** Creates an account with this code and 10 USDC. */
async function contractAccount(code: Hex): Promise<Address> {
  const { address } = newOwner();
  await chain.client.setCode({ address, bytecode: code });
  await chain.fund(address, 10_000_000n);
  return address;
}

describe("A smart wallet", () => {
  test("A smart wallet pays with its owner's signature and gets the certificate itself", async () => {
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

  test("A smart wallet is not charged for a signature by another key", async () => {
    const owner = newOwner();
    const wallet = await deploy(owner.address);
    const forged = await signPayment(newOwner(), { from: wallet });
    expect(expectPaymentRequired(await post(basic(), v2(forged)))).toMatch(/is not the payer's/);
    await nothingCharged(chain, wallet);
  });

  test("A wrong signature does not get the wallet's result", async () => {
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

describe("An account that delegates to a smart wallet (EIP-7702)", () => {
  const delegate = (account: Address, wallet: Address) =>
    chain.client.setCode({ address: account, bytecode: `0xef0100${wallet.slice(2)}` });

  test("A delegating account pays with its own signature if the wallet code accepts it", async () => {
    const account = await newPayer(chain);
    await delegate(account.address, await deploy(account.address));
    const signed = await signPayment(account);
    expect((await post(basic(), v2(signed))).status).toBe(200);
    await chargedOnce(chain, signed);
  });

  test("A delegating account is refused if the wallet code rejects its signature, because USDC calls the wallet", async () => {
    const account = await newPayer(chain);
    await delegate(account.address, await deploy(newOwner().address));
    const why = expectPaymentRequired(await post(basic(), v2(await signPayment(account))));
    expect(why).toMatch(/rejects the signature/);
    await nothingCharged(chain, account);
  });
});

describe("A contract that is not a wallet", () => {
  const others = Object.entries(ANSWERS).filter(([answer]) => answer !== "the magic value");
  test.each(others)("A contract that returns %s is refused", async (_, code) => {
    const contract = await contractAccount(code);
    const signed = await signPayment(newOwner(), { from: contract });
    expect(expectPaymentRequired(await post(basic(), v2(signed)))).toMatch(/is not the payer's/);
    await nothingCharged(chain, contract);
  });

  test("A contract without isValidSignature is refused", async () => {
    const signed = await signPayment(newOwner(), { from: MULTICALL3 });
    expect(expectPaymentRequired(await post(basic(), v2(signed)))).toMatch(/is not the payer's/);
    await nothingCharged(chain, MULTICALL3);
  });
});

test("No response, log line, or database row contains a plaintext signature", () => expectNoSignatureAnywhere(service));

describe("Coinbase", () => {
  /** Coinbase's factory, version 1, at its address on Base. */
  const FACTORY = "0x0ba5ed0c6aa8c49038f819e587e2633c4a9f428a";
  const { CANONICAL_CODE } = process.env;
  const codes: Readonly<Record<Address, Hex>> =
    CANONICAL_CODE === undefined ? {} : JSON.parse(readFileSync(CANONICAL_CODE, "utf8"));
  const hasFactory = Object.keys(codes).some((address) => address.toLowerCase() === FACTORY);

  /** Signs as viem's wallet client does, wrapped (ERC-6492) while the wallet is not deployed. */
  const asSigner = (wallet: SmartAccount): LocalAccount => wallet as unknown as LocalAccount;

  const wrapped = (signature: Hex): Hex => serializeErc6492Signature({ address: FACTORY, data: "0x12", signature });

  /** Wraps every signature, as Base Account does even after the wallet is deployed. */
  const wrapping = (wallet: SmartAccount): LocalAccount => {
    const signer = asSigner(wallet);
    return {
      address: wallet.address,
      signTypedData: async (data: never) => wrapped(await signer.signTypedData(data)),
      signMessage: async (message: never) => wrapped(await signer.signMessage(message)),
    } as unknown as LocalAccount;
  };

  describe.skipIf(!hasFactory)("Coinbase's smart wallet with its real code and viem's client", () => {
    let chain: TestChain;
    let service: TestService;
    let basic: string;
    beforeAll(async () => {
      chain = await startTestChain();
      for (const [address, bytecode] of Object.entries(codes) as [Address, Hex][])
        await chain.client.setCode({ address, bytecode });
      const operator = await openOperator(chain);
      service = await startService({ chain, config: { escrowAddresses: [operator.address] } });
      basic = `${service.url}/test/basic`;
      return async () => {
        await service.stop();
        await chain.stop();
      };
    });

    async function newWallet(): Promise<SmartAccount> {
      const owners = [privateKeyToAccount(generatePrivateKey())];
      const wallet = await toCoinbaseSmartAccount({ client: chain.client as never, owners, version: "1" });
      await chain.fund(wallet.address, 10_000_000n);
      return wallet;
    }

    async function deploy(wallet: SmartAccount): Promise<void> {
      const { factory, factoryData } = await wallet.getFactoryArgs();
      const call = { to: factory as Hex, data: factoryData as Hex };
      const hash = await chain.client.sendTransaction({ account: devAccount(1).address, chain: null, ...call });
      await chain.client.waitForTransactionReceipt({ hash });
    }

    test("An undeployed wallet gets a 402 that asks for deployment first, and the same header pays afterwards", async () => {
      const wallet = await newWallet();
      const early = await signPayment(asSigner(wallet));
      expect(early.signature).toMatch(/(6492){16}$/);
      expect(expectPaymentRequired(await post(basic, v2(early)))).toMatch(/Deploy the wallet first/);
      await nothingCharged(chain, wallet.address);
      await deploy(wallet);
      await vi.waitFor(async () => expect((await post(basic, v2(early))).status).toBe(200), 10_000);
      await chargedOnce(chain, early);
    });

    test("A wrapped signature and the bare one are the same payment", async () => {
      const wallet = await newWallet();
      await deploy(wallet);
      const bare = await signPayment(asSigner(wallet));
      const first = await post(basic, v2({ ...bare, signature: wrapped(bare.signature) }));
      expect([first.status, first.body.wallet]).toEqual([200, wallet.address.toLowerCase()]);
      expect((await post(basic, v2(bare))).text).toBe(first.text);
      await chargedOnce(chain, bare);
    });

    test("Wrapped signatures work for auth-capture, sign-in, and a verified statement", async () => {
      const wallet = await newWallet();
      await deploy(wallet);
      const bought = await stockFetch(wrapping(wallet))(`${service.url}/escrow/demo`, { method: "POST" });
      expect([bought.status, await bought.json()]).toMatchObject([200, { escrow: { status: "released" } }]);
      expect(pageIn(await signInAt(purchasesUrl(service.url), wrapping(wallet))).purchases).toHaveLength(1);
      const signed = await signPayment(wrapping(wallet));
      const payment = await signPayment(await newPayer(chain), { value: STATEMENT_PRICE });
      const body = JSON.stringify({ authorization: wire(signed), signature: signed.signature });
      const statement = await post(`${service.url}/settlement`, v2(payment), body);
      expect([statement.status, statement.body]).toMatchObject([200, { signature: { verified: true } }]);
    });
  });
});
