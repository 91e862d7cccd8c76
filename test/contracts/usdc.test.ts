import { domainSeparator, parseEventLogs } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeAll, describe, expect, test } from "vitest";
import type { Authorization } from "../../api/platform/chain/view.ts";
import { NETWORKS } from "../../api/platform/networks.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import { connectUsdc, USDC_ENVIRONMENTS, type UsdcChain } from "../support/chain/usdc-chain.ts";
import { authorization, signAuthorization, signCancellation, usdcDomain } from "../support/payments/signing.ts";

const RELAYER = devAccount(1).address;
const PAYEE = "0x00000000000000000000000000000000c0ffee02";
const ONE_USD = 1_000_000n;

for (const environment of USDC_ENVIRONMENTS) {
  if (environment.skipped !== null) console.log(`USDC on ${environment.title} is skipped: ${environment.skipped}`);
  describe.skipIf(environment.skipped !== null)(`USDC on ${environment.title}`, () => {
    let chain: UsdcChain;
    beforeAll(async () => {
      chain = await connectUsdc(environment);
      return () => chain.connection.close();
    });

    const newPayer = async (usdc = ONE_USD) => {
      const payer = privateKeyToAccount(generatePrivateKey());
      await chain.fund(payer.address, usdc);
      return payer;
    };
    const read = <F extends "name" | "version" | "decimals" | "DOMAIN_SEPARATOR">(functionName: F) =>
      chain.client.readContract({ address: environment.network.usdc.address, abi: USDC_ABI, functionName });
    const submit = async (message: Authorization, signature: `0x${string}`) => {
      const { from, to, value, validAfter, validBefore, nonce } = message;
      const hash = await chain.client.writeContract({
        account: RELAYER,
        chain: null,
        address: environment.network.usdc.address,
        abi: USDC_ABI,
        functionName: "transferWithAuthorization",
        args: [from, to, value, validAfter, validBefore, nonce, signature],
        gas: 300_000n,
      });
      return chain.client.waitForTransactionReceipt({ hash });
    };
    const pay = async (payer: ReturnType<typeof privateKeyToAccount>, fields: Partial<Authorization> = {}) => {
      const message = authorization({ from: payer.address, to: PAYEE, value: ONE_USD, ...fields });
      return submit(message, await signAuthorization(payer, environment.network, message));
    };
    const atTime = async (timestamp: bigint) => chain.client.setNextBlockTimestamp({ timestamp });
    const later = async (seconds: bigint) => (await chain.client.getBlock()).timestamp + seconds;

    test("Its EIP-712 domain is the one in the payment terms", async () => {
      expect(await read("name")).toBe(environment.network.usdc.name);
      expect(await read("version")).toBe("2");
      expect(await read("decimals")).toBe(6);
      expect(await read("DOMAIN_SEPARATOR")).toBe(domainSeparator({ domain: usdcDomain(environment.network) }));
    });

    test("An authorization moves its value, no matter who submits it", async () => {
      const payer = await newPayer(3n * ONE_USD);
      const before = await chain.balanceOf(PAYEE);
      await pay(payer);
      expect(await chain.balanceOf(payer.address)).toBe(2n * ONE_USD);
      expect(await chain.balanceOf(PAYEE)).toBe(before + ONE_USD);
    });

    test("AuthorizationUsed is directly followed by its Transfer", async () => {
      const payer = await newPayer();
      const message = authorization({ from: payer.address, to: PAYEE, value: ONE_USD });
      const receipt = await submit(message, await signAuthorization(payer, environment.network, message));
      const [used, transfer, ...rest] = parseEventLogs({ abi: USDC_ABI, logs: receipt.logs });
      expect(rest).toEqual([]);
      expect(used).toMatchObject({
        eventName: "AuthorizationUsed",
        args: { authorizer: payer.address, nonce: message.nonce },
      });
      expect(transfer).toMatchObject({ eventName: "Transfer", args: { from: payer.address, value: ONE_USD } });
      expect(transfer?.logIndex).toBe((used?.logIndex ?? Number.NaN) + 1);
    });

    test("A nonce can be used only once", async () => {
      const payer = await newPayer(2n * ONE_USD);
      const message = authorization({ from: payer.address, to: PAYEE, value: ONE_USD });
      const signature = await signAuthorization(payer, environment.network, message);
      await submit(message, signature);
      await expect(submit(message, signature)).rejects.toThrow("authorization is used or canceled");
      await expect(pay(payer, { nonce: message.nonce, value: 1n })).rejects.toThrow("used or canceled");
    });

    test("A canceled nonce is used up", async () => {
      const payer = await newPayer();
      const message = authorization({ from: payer.address, to: PAYEE, value: ONE_USD });
      const signature = await signAuthorization(payer, environment.network, message);
      const cancelled = { authorizer: payer.address, nonce: message.nonce };
      const cancellation = await signCancellation(payer, environment.network, cancelled);
      await chain.client.writeContract({
        account: RELAYER,
        chain: null,
        address: environment.network.usdc.address,
        abi: USDC_ABI,
        functionName: "cancelAuthorization",
        args: [payer.address, message.nonce, cancellation],
      });
      await expect(submit(message, signature)).rejects.toThrow("authorization is used or canceled");
    });

    test("An authorization is valid until the second before validBefore", async () => {
      const payer = await newPayer(2n * ONE_USD);
      const validBefore = await later(100n);
      await atTime(validBefore - 1n);
      await pay(payer, { validBefore });
      await atTime(validBefore);
      await expect(pay(payer, { validBefore })).rejects.toThrow("authorization is expired");
    });

    test("An authorization is valid from the second after validAfter", async () => {
      const payer = await newPayer();
      const validAfter = await later(100n);
      await atTime(validAfter);
      await expect(pay(payer, { validAfter })).rejects.toThrow("authorization is not yet valid");
      await atTime(validAfter + 1n);
      await pay(payer, { validAfter });
    });

    test("A changed value, payee, or chain makes the signature invalid", async () => {
      const payer = await newPayer(2n * ONE_USD);
      const message = authorization({ from: payer.address, to: PAYEE, value: ONE_USD });
      const signature = await signAuthorization(payer, environment.network, message);
      await expect(submit({ ...message, value: ONE_USD + 1n }, signature)).rejects.toThrow("invalid signature");
      await expect(submit({ ...message, to: RELAYER }, signature)).rejects.toThrow("invalid signature");
      const other = NETWORKS[environment.network.id === "eip155:8453" ? "eip155:84532" : "eip155:8453"];
      const foreign = await signAuthorization(payer, other, message);
      await expect(submit(message, foreign)).rejects.toThrow("invalid signature");
    });
  });
}
