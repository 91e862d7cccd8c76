import { readFileSync } from "node:fs";
import {
  concat,
  encodeDeployData,
  getContractAddress,
  type Hex,
  type LocalAccount,
  parseSignature,
  serializeCompactSignature,
  serializeErc6492Signature,
  signatureToCompactSignature,
  zeroAddress,
  zeroHash,
} from "viem";
import { type SmartAccount, toCoinbaseSmartAccount } from "viem/account-abstraction";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { STATEMENT_PRICE } from "../../../api/settlement-status/statement-request.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { artifactOf } from "../../support/chain/contracts.ts";
import { openOperator, stockFetch } from "../../support/escrow/auth-capture.ts";
import { forFile } from "../../support/for-file.ts";
import {
  expectNoSignatureAnywhere,
  expectPaymentRequired,
  expectProblem,
} from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { post, v1, v2 } from "../../support/payments/requests.ts";
import { altered, newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { deployWallet, SMART_WALLET_ABI } from "../../support/payments/wallets.ts";
import { pageIn, purchasesUrl, signInAt } from "../../support/purchases/sign-in.ts";
import { startService, type TestService } from "../../support/service/service.ts";
import { wire } from "../../support/settlement-status/statements.ts";

// Wallets and clients write the header, its base64, and the signature in several ways.

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const basic = `${service.url}/test/basic`;
const newOwner = (): LocalAccount => privateKeyToAccount(generatePrivateKey());
/** Deploys the owner's smart wallet with 10 USDC. */
async function deploy(owner: Hex): Promise<Hex> {
  const { address } = await deployWallet(chain, owner);
  await chain.fund(address, 10_000_000n);
  return address;
}
/** The CREATE2 factory that takes a salt and creation code and exists on the local chains. */
const FACTORY: Hex = "0x4e59b44847b379578588920ca78fbf26c0b4956c";

const headerOf = (headers: Record<string, string>): string => Object.values(headers)[0] ?? "";
const toUrl = (base64: string): string => base64.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const marked = (base64: string): string => encodeText(`\ufeff${Buffer.from(base64, "base64")}`);
const encodeText = (text: string): string => Buffer.from(text).toString("base64");
const responseIn = (answer: { headers: Headers }) =>
  JSON.parse(Buffer.from(answer.headers.get("payment-response") ?? "", "base64").toString());

describe("A payment header", () => {
  test("The envelope decides the version of the payment and of the response", async () => {
    const [two, one] = [await signPayment(await newPayer(chain)), await signPayment(await newPayer(chain))];
    const asTwo = await post(basic, { "X-PAYMENT": headerOf(v2(two)) });
    expect([asTwo.status, asTwo.body.detected]).toMatchObject([200, { protocol_version: "v2" }]);
    expect(asTwo.headers.get("x-payment-response")).toBeNull();
    expect(responseIn(asTwo)).toMatchObject({ success: true, network: "eip155:8453" });
    const asOne = await post(basic, { "PAYMENT-SIGNATURE": headerOf(v1(one)) });
    expect([asOne.status, asOne.body.detected]).toMatchObject([200, { protocol_version: "v1" }]);
    expect(asOne.headers.get("x-payment-response")).toBe(asOne.headers.get("payment-response"));
    expect(responseIn(asOne)).toMatchObject({ success: true, network: "base" });
    await Promise.all([two, one].map((signed) => chargedOnce(chain, signed)));
  });

  test("A payment in both headers and in every base64 form is charged once", async () => {
    const signed = await signPayment(await newPayer(chain));
    const header = headerOf(v2(signed));
    const spellings = [
      { ...v2(signed), ...v1(signed) },
      { "PAYMENT-SIGNATURE": header },
      { "X-PAYMENT": header },
      { "PAYMENT-SIGNATURE": toUrl(header), "X-PAYMENT": header },
      { "PAYMENT-SIGNATURE": toUrl(marked(header)) },
      { "X-PAYMENT": marked(header) },
    ];
    const answers = await Promise.all(spellings.map((headers) => post(basic, headers)));
    expect(answers.map(({ status }) => status)).toEqual(spellings.map(() => 200));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    await chargedOnce(chain, signed);
  });
});

/** Returns the payment with its signature in another form. */
const as = (signed: Signed, form: (signature: Hex) => Hex): Signed => ({
  ...signed,
  signature: form(signed.signature),
});
const fromZero = (signature: Hex): Hex => `${signature.slice(0, 130)}${signature.endsWith("1b") ? "00" : "01"}` as Hex;
const compact = (signature: Hex): Hex =>
  serializeCompactSignature(signatureToCompactSignature(parseSignature(signature)));
const wrapped = (signature: Hex, address: Hex = zeroAddress, data: Hex = "0x12"): Hex =>
  serializeErc6492Signature({ address, data, signature });
const FORMS = { fromZero, compact, wrapped, wrappedCompact: (one: Hex) => wrapped(compact(one)) } as const;

describe("The signature of an account", () => {
  test("All forms of one signature are one payment, and a wrong signature in any form gets 400", async () => {
    const signed = await signPayment(await newPayer(chain));
    const forms = [signed, ...Object.values(FORMS).map((form) => as(signed, form))];
    const answers = await Promise.all(forms.map((one) => post(basic, v2(one))));
    expect(answers.map(({ status }) => status)).toEqual(forms.map(() => 200));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    for (const form of [fromZero, compact, wrapped]) {
      const wrong = await post(basic, v2(as(signed, (signature) => form(altered(signature)))));
      expectProblem(wrong, 400, "malformed_request");
    }
    await chargedOnce(chain, signed);
  });
});

describe("A smart wallet", () => {
  async function creationFor(owner: LocalAccount) {
    const { bytecode } = artifactOf("SmartWallet");
    const creation = encodeDeployData({ abi: SMART_WALLET_ABI, bytecode, args: [owner.address] });
    const address = getContractAddress({ opcode: "CREATE2", from: FACTORY, salt: zeroHash, bytecode: creation });
    await chain.fund(address, 10_000_000n);
    return { address, data: concat([zeroHash, creation]) };
  }

  test("A deployed wallet pays once with a wrapped (ERC-6492) and a bare signature together, and gets the certificate itself", async () => {
    const owner = newOwner();
    const address = await deploy(owner.address);
    const signed = await signPayment(owner, { from: address });
    const forms = [as(signed, wrapped), as(signed, (one) => wrapped(one, FACTORY, "0x1234")), signed];
    const answers = await Promise.all(forms.map((one) => post(basic, v2(one))));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(answers[0]?.body).toMatchObject({ verdict: "pass", wallet: address.toLowerCase() });
    const wrong = await post(basic, v2(await signPayment(newOwner(), signed.authorization)));
    expectProblem(wrong, 400, "malformed_request");
    expect(wrong.text).not.toContain(String(answers[0]?.body.id));
    await chargedOnce(chain, signed);
    const forged = await signPayment(newOwner(), { from: address });
    expect(expectPaymentRequired(await post(basic, v2(as(forged, wrapped))))).toMatch(/is not the payer's/);
  });

  test("An undeployed wallet gets a 402 that asks for deployment first, is not charged, and pays once deployed", async () => {
    const owner = newOwner();
    const { address, data } = await creationFor(owner);
    const signed = as(await signPayment(owner, { from: address }), (one) => wrapped(one, FACTORY, data));
    expect(expectPaymentRequired(await post(basic, v2(signed)))).toMatch(
      new RegExp(`${address.toLowerCase()} is not deployed on base.*Deploy the wallet first`),
    );
    await nothingCharged(chain, address);
    const hash = await chain.client.sendTransaction({ account: devAccount(1).address, chain: null, to: FACTORY, data });
    await chain.client.waitForTransactionReceipt({ hash });
    await vi.waitFor(async () => expect((await post(basic, v2(signed))).status).toBe(200), 10_000);
    await chargedOnce(chain, signed);
  });

  test("A doubly wrapped signature is refused", async () => {
    const owner = newOwner();
    const address = await deploy(owner.address);
    const signed = as(await signPayment(owner, { from: address }), (one) => wrapped(wrapped(one)));
    expect(expectPaymentRequired(await post(basic, v2(signed)))).toMatch(/is not the payer's/);
    await nothingCharged(chain, address);
  });
});

describe("An account that delegates to a smart wallet (EIP-7702)", () => {
  const delegate = (account: Hex, wallet: Hex) =>
    chain.client.setCode({ address: account, bytecode: `0xef0100${wallet.slice(2)}` });

  test("A delegating account pays with its own signature if the wallet code accepts it", async () => {
    const account = await newPayer(chain);
    await delegate(account.address, await deploy(account.address));
    const signed = await signPayment(account);
    expect((await post(basic, v2(signed))).status).toBe(200);
    await chargedOnce(chain, signed);
  });

  test("A delegating account is refused if the wallet code rejects its signature, because USDC calls the wallet", async () => {
    const account = await newPayer(chain);
    await delegate(account.address, await deploy(newOwner().address));
    const why = expectPaymentRequired(await post(basic, v2(await signPayment(account))));
    expect(why).toMatch(/rejects the signature/);
    await nothingCharged(chain, account);
  });
});

describe("A contract that is not a wallet", () => {
  /** Bytecode of contracts, keyed by the value that `isValidSignature` returns for any input. */
  test.each<[string, Hex]>([
    ["returns nothing", "0x00"],
    ["returns another value", `0x7f${"ff".repeat(4)}${"00".repeat(28)}60005260206000f3`],
    ["never returns", "0x5b600056"],
    ["has no such function", "0x5f5ffd"],
  ])("A contract that %s is refused", async (_, bytecode) => {
    const { address } = await newPayer(chain);
    await chain.client.setCode({ address, bytecode });
    const signed = await signPayment(newOwner(), { from: address });
    expect(expectPaymentRequired(await post(basic, v2(signed)))).toMatch(/is not the payer's/);
    await nothingCharged(chain, address);
  });
});

test("No response, log line, or database row contains a plaintext signature", () => expectNoSignatureAnywhere(service));

describe("Coinbase", () => {
  /** Coinbase's factory, version 1, at its address on Base. */
  const COINBASE = "0x0ba5ed0c6aa8c49038f819e587e2633c4a9f428a";
  const { CANONICAL_CODE } = process.env;
  const codes: Readonly<Record<Hex, Hex>> =
    CANONICAL_CODE === undefined ? {} : JSON.parse(readFileSync(CANONICAL_CODE, "utf8"));
  const hasFactory = Object.keys(codes).some((address) => address.toLowerCase() === COINBASE);
  if (!hasFactory) console.log("Coinbase's smart wallet is skipped: CANONICAL_CODE does not have its factory's code");

  /** Signs as viem's wallet client does, wrapped (ERC-6492) while the wallet is not deployed. */
  const asSigner = (wallet: SmartAccount): LocalAccount => wallet as unknown as LocalAccount;

  /** Wraps every signature, as Base Account does even after the wallet is deployed. */
  const wrapping = (wallet: SmartAccount): LocalAccount => {
    const signer = asSigner(wallet);
    return {
      address: wallet.address,
      signTypedData: async (data: never) => wrapped(await signer.signTypedData(data), COINBASE),
      signMessage: async (message: never) => wrapped(await signer.signMessage(message), COINBASE),
    } as unknown as LocalAccount;
  };

  describe.skipIf(!hasFactory)("Coinbase's smart wallet with its real code and viem's client", () => {
    let chain: TestChain;
    let service: TestService;
    let basic: string;
    beforeAll(async () => {
      chain = await startTestChain();
      for (const [address, bytecode] of Object.entries(codes) as [Hex, Hex][])
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
