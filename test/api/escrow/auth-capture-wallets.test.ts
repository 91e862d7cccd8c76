import { concat, encodeDeployData, getContractAddress, type Hex, serializeErc6492Signature, zeroHash } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeAll, describe, expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { artifactOf } from "../../support/chain/contracts.ts";
import {
  type AuthCapturePayer,
  codeIn,
  openOperator,
  signedFor,
  stockFetch,
  type WirePayment,
} from "../../support/escrow/auth-capture.ts";
import { encodeHeader } from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { post } from "../../support/payments/requests.ts";
import { burningWallet, deployWallet, SMART_WALLET_ABI } from "../../support/payments/wallets.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const operator = await openOperator(chain);
const addresses = [operator.address];
const service = await forFile(startService({ chain, config: { escrowAddresses: addresses } }));
const url = `${service.url}/escrow/demo`;

const pay = (payment: WirePayment) => post(url, { "PAYMENT-SIGNATURE": encodeHeader(payment) });
const PRICE = PRICES.demo;

describe("smart wallet as a payer of the escrow demo", () => {
  /** The deterministic deployment proxy. It takes a salt and creation code, and the local chains have it. */
  const FACTORY: Hex = "0x4e59b44847b379578588920ca78fbf26c0b4956c";
  const HOSTILE: Hex = "0x00000000000000000000000000000000bad0bad0";

  /** Returns the wallet that the factory would deploy for a new owner. Its signatures include the factory call. */
  async function undeployed(factory = FACTORY): Promise<AuthCapturePayer> {
    const owner = privateKeyToAccount(generatePrivateKey());
    const { bytecode } = artifactOf("SmartWallet");
    const creation = encodeDeployData({ abi: SMART_WALLET_ABI, bytecode, args: [owner.address] });
    const address = getContractAddress({ opcode: "CREATE2", from: FACTORY, salt: zeroHash, bytecode: creation });
    await chain.fund(address, 1_000_000n);
    const data = concat([zeroHash, creation]);
    return {
      address,
      signTypedData: async (typedData) =>
        serializeErc6492Signature({ address: factory, data, signature: await owner.signTypedData(typedData) }),
    };
  }

  test("A deployed wallet buys with its owner's signature (ERC-1271)", async () => {
    const owner = privateKeyToAccount(generatePrivateKey());
    const { address } = await deployWallet(chain, owner.address);
    await chain.fund(address, 1_000_000n);
    const payer = { address, signTypedData: owner.signTypedData };
    const response = await stockFetch(payer)(url, { method: "POST" });
    expect([response.status, await response.json()]).toMatchObject([200, { escrow: { status: "released" } }]);
    expect(await chain.usdcBalance(address)).toBe(1_000_000n - PRICE);
    const forged = await signedFor(url, {
      address,
      signTypedData: privateKeyToAccount(generatePrivateKey()).signTypedData,
    });
    expect(codeIn(await pay(forged))).toBe("signature");
  });

  test("An undeployed wallet is rejected, because no factory is allowed by default", async () => {
    const payment = await signedFor(url, await undeployed());
    expect(codeIn(await pay(payment))).toBe("erc6492_factory_not_allowed");
  });

  describe("allowed factory", () => {
    let allowed: string;
    beforeAll(async () => {
      await chain.client.setCode({ address: HOSTILE, bytecode: burningWallet("0x5f15") });
      const config = { escrowAddresses: addresses, walletFactories: [FACTORY, HOSTILE] };
      const other = await startService({ chain, database: service.database, config });
      allowed = `${other.url}/escrow/demo`;
      return () => other.stop();
    });
    const payThere = (payment: WirePayment) => post(allowed, { "PAYMENT-SIGNATURE": encodeHeader(payment) });

    test("An undeployed wallet buys, is deployed by the payment, and its header is replayed", async () => {
      const payer = await undeployed();
      const payment = await signedFor(allowed, payer);
      const answer = await payThere(payment);
      expect([answer.status, answer.body]).toMatchObject([200, { escrow: { status: "released" } }]);
      expect(await chain.client.getCode({ address: payer.address })).toMatch(/^0x60/);
      expect(await chain.usdcBalance(payer.address)).toBe(1_000_000n - PRICE);
      const again = await payThere(payment);
      expect([again.status, again.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
    });

    test("Another owner's signature buys nothing, and a factory that burns all gas causes no transaction", async () => {
      const payer = await undeployed();
      const forged = { ...payer, signTypedData: (await undeployed()).signTypedData };
      const sent = () => chain.client.getTransactionCount({ address: operator.arbiter });
      const before = await sent();
      expect(codeIn(await payThere(await signedFor(allowed, forged)))).toBe("signature");
      const burning = await signedFor(allowed, await undeployed(HOSTILE));
      expect(codeIn(await payThere(burning))).toBe("signature");
      expect(await sent()).toBe(before);
    });
  });
});
