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
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, test, vi } from "vitest";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { artifactOf } from "../../support/chain/contracts.ts";
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
import { startService } from "../../support/service/service.ts";

// Wallets and clients write the header, its base64, and the signature in several ways.

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const basic = `${service.url}/test/basic`;
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
  const newOwner = () => privateKeyToAccount(generatePrivateKey());

  test("A deployed wallet pays once with a wrapped (ERC-6492) and a bare signature together", async () => {
    const owner = newOwner();
    const { address } = await deployWallet(chain, owner.address);
    await chain.fund(address, 10_000_000n);
    const signed = await signPayment(owner, { from: address });
    const forms = [as(signed, wrapped), as(signed, (one) => wrapped(one, FACTORY, "0x1234")), signed];
    const answers = await Promise.all(forms.map((one) => post(basic, v2(one))));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
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
    const { address } = await deployWallet(chain, owner.address);
    await chain.fund(address, 10_000_000n);
    const signed = as(await signPayment(owner, { from: address }), (one) => wrapped(wrapped(one)));
    expect(expectPaymentRequired(await post(basic, v2(signed)))).toMatch(/is not the payer's/);
    await nothingCharged(chain, address);
  });
});

test("No response, log line, or database row contains a plaintext signature", () => expectNoSignatureAnywhere(service));
