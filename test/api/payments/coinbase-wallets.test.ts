import { readFileSync } from "node:fs";
import { type Address, type Hex, type LocalAccount, serializeErc6492Signature } from "viem";
import { type SmartAccount, toCoinbaseSmartAccount } from "viem/account-abstraction";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { STATEMENT_PRICE } from "../../../api/settlement-status/statement-request.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { openOperator, stockFetch } from "../../support/escrow/auth-capture.ts";
import { expectPaymentRequired } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { pageIn, purchasesUrl, signInAt } from "../../support/purchases/sign-in.ts";
import { startService, type TestService } from "../../support/service/service.ts";
import { wire } from "../../support/settlement-status/statements.ts";

/** Coinbase's factory, version 1, at its address on Base. */
const FACTORY = "0x0ba5ed0c6aa8c49038f819e587e2633c4a9f428a";
const { CANONICAL_CODE } = process.env;
const codes: Readonly<Record<Address, Hex>> =
  CANONICAL_CODE === undefined ? {} : JSON.parse(readFileSync(CANONICAL_CODE, "utf8"));
const hasFactory = Object.keys(codes).some((address) => address.toLowerCase() === FACTORY);

/** Signs as viem's client of the wallet does: wrapped (ERC-6492) while it is not deployed. */
const asSigner = (wallet: SmartAccount): LocalAccount => wallet as unknown as LocalAccount;

const wrapped = (signature: Hex): Hex => serializeErc6492Signature({ address: FACTORY, data: "0x12", signature });

/** Wraps whatever it signs, as Base Account does also once the wallet is deployed. */
const wrapping = (wallet: SmartAccount): LocalAccount => {
  const signer = asSigner(wallet);
  return {
    address: wallet.address,
    signTypedData: async (data: never) => wrapped(await signer.signTypedData(data)),
    signMessage: async (message: never) => wrapped(await signer.signMessage(message)),
  } as unknown as LocalAccount;
};

describe.skipIf(!hasFactory)("Coinbase's smart wallet, by its real code and viem's client", () => {
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

  test("is told to deploy first, and the same header pays once it is there", async () => {
    const wallet = await newWallet();
    const early = await signPayment(asSigner(wallet));
    expect(early.signature).toMatch(/(6492){16}$/);
    expect(expectPaymentRequired(await post(basic, v2(early)))).toMatch(/Deploy the wallet first/);
    await nothingCharged(chain, wallet.address);
    await deploy(wallet);
    await vi.waitFor(async () => expect((await post(basic, v2(early))).status).toBe(200), 10_000);
    await chargedOnce(chain, early);
  });

  test("pays once, by a wrapped signature and by a bare one", async () => {
    const wallet = await newWallet();
    await deploy(wallet);
    const bare = await signPayment(asSigner(wallet));
    const first = await post(basic, v2({ ...bare, signature: wrapped(bare.signature) }));
    expect([first.status, first.body.wallet]).toEqual([200, wallet.address.toLowerCase()]);
    expect((await post(basic, v2(bare))).text).toBe(first.text);
    await chargedOnce(chain, bare);
  });

  test("buys by auth-capture, signs in, and has its signature verified in a statement, wrapped each time", async () => {
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
