import { domainSeparator, encodeFunctionData, type Hex, hashMessage, parseEventLogs } from "viem";
import { generatePrivateKey, privateKeyToAccount, sign } from "viem/accounts";
import { beforeAll, describe, expect, test } from "vitest";
import type { Authorization } from "../../api/platform/chain/view.ts";
import { NETWORKS } from "../../api/platform/networks.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import { connectUsdc, USDC_ENVIRONMENTS, type UsdcChain } from "../support/chain/usdc-chain.ts";
import { authorization, signAuthorization, signCancellation, usdcDomain } from "../support/payments/signing.ts";
import { deployWallet, SMART_WALLET_ABI } from "../support/payments/wallets.ts";

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

    test("its EIP-712 domain is the one that the payment terms name", async () => {
      expect(await read("name")).toBe(environment.network.usdc.name);
      expect(await read("version")).toBe("2");
      expect(await read("decimals")).toBe(6);
      expect(await read("DOMAIN_SEPARATOR")).toBe(domainSeparator({ domain: usdcDomain(environment.network) }));
    });

    test("an authorization moves its value, no matter who submits it", async () => {
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

    test("a smart wallet pays by ERC-1271: its owner's signature counts, a stranger's does not", async () => {
      const owner = privateKeyToAccount(generatePrivateKey());
      const stranger = privateKeyToAccount(generatePrivateKey());
      const { address: from } = await deployWallet(chain, owner.address);
      await chain.fund(from, ONE_USD);
      const message = authorization({ from, to: PAYEE, value: ONE_USD });
      const forged = await signAuthorization(stranger, environment.network, message);
      await expect(submit(message, forged)).rejects.toThrow("invalid signature");
      await submit(message, await signAuthorization(owner, environment.network, message));
      expect(await chain.balanceOf(from)).toBe(0n);
    });

    test("a nonce is used once", async () => {
      const payer = await newPayer(2n * ONE_USD);
      const message = authorization({ from: payer.address, to: PAYEE, value: ONE_USD });
      const signature = await signAuthorization(payer, environment.network, message);
      await submit(message, signature);
      await expect(submit(message, signature)).rejects.toThrow("authorization is used or canceled");
      await expect(pay(payer, { nonce: message.nonce, value: 1n })).rejects.toThrow("used or canceled");
    });

    test("a cancelled nonce is used up", async () => {
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

    test("an authorization is valid until the second before validBefore", async () => {
      const payer = await newPayer(2n * ONE_USD);
      const validBefore = await later(100n);
      await atTime(validBefore - 1n);
      await pay(payer, { validBefore });
      await atTime(validBefore);
      await expect(pay(payer, { validBefore })).rejects.toThrow("authorization is expired");
    });

    test("an authorization is valid from the second after validAfter", async () => {
      const payer = await newPayer();
      const validAfter = await later(100n);
      await atTime(validAfter);
      await expect(pay(payer, { validAfter })).rejects.toThrow("authorization is not yet valid");
      await atTime(validAfter + 1n);
      await pay(payer, { validAfter });
    });

    test("a changed value, payee or chain makes the signature invalid", async () => {
      const payer = await newPayer(2n * ONE_USD);
      const message = authorization({ from: payer.address, to: PAYEE, value: ONE_USD });
      const signature = await signAuthorization(payer, environment.network, message);
      await expect(submit({ ...message, value: ONE_USD + 1n }, signature)).rejects.toThrow("invalid signature");
      await expect(submit({ ...message, to: RELAYER }, signature)).rejects.toThrow("invalid signature");
      const other = NETWORKS[environment.network.id === "eip155:8453" ? "eip155:84532" : "eip155:8453"];
      const foreign = await signAuthorization(payer, other, message);
      await expect(submit(message, foreign)).rejects.toThrow("invalid signature");
    });

    test("more than the balance cannot be paid", async () => {
      const payer = await newPayer(ONE_USD - 1n);
      await expect(pay(payer)).rejects.toThrow("transfer amount exceeds balance");
    });

    test("nothing moves while USDC is paused", async () => {
      const payer = await newPayer();
      await chain.pause();
      await expect(pay(payer)).rejects.toThrow("Pausable: paused");
      await chain.unpause();
      await pay(payer);
    });

    test("a blacklisted account neither pays nor is paid", async () => {
      const payer = await newPayer();
      for (const account of [payer.address, PAYEE] as const) {
        await chain.blacklist(account);
        await expect(pay(payer)).rejects.toThrow("account is blacklisted");
        await chain.unblacklist(account);
      }
      await pay(payer);
    });
  });
}

const NETWORK = NETWORKS["eip155:8453"];
const OWNER = devAccount(2).address;
const STRANGER = devAccount(3).address;

const DIGEST = hashMessage("pay");
const MAGIC = "0x1626ba7e";
const NO = "0xffffffff";

describe("SmartWallet", () => {
  let chain: UsdcChain;
  let wallet: Hex;
  const key = generatePrivateKey();
  const signer = privateKeyToAccount(key);

  beforeAll(async () => {
    chain = await connectUsdc({ title: "", hardhatNetwork: "simulatedBase", network: NETWORK, skipped: null });
    wallet = (await deployWallet(chain, OWNER)).address;
    return () => chain.connection.close();
  });

  const isValid = async (address: Hex, hash: Hex, signature: Hex) =>
    chain.client.readContract({
      address,
      abi: SMART_WALLET_ABI,
      functionName: "isValidSignature",
      args: [hash, signature],
    });
  const execute = async (account: Hex, target: Hex, { value = 0n, data = "0x" as Hex } = {}) => {
    const { request, result } = await chain.client.simulateContract({
      account,
      address: wallet,
      abi: SMART_WALLET_ABI,
      functionName: "execute",
      args: [target, value, data],
    });
    const receipt = await chain.client.waitForTransactionReceipt({ hash: await chain.client.writeContract(request) });
    return { result, receipt };
  };
  const transferOf = (value: bigint) =>
    encodeFunctionData({ abi: USDC_ABI, functionName: "transfer", args: [STRANGER, value] });

  test("its owner is fixed when it is made", async () => {
    expect(await chain.client.readContract({ address: wallet, abi: SMART_WALLET_ABI, functionName: "OWNER" })).toBe(
      OWNER,
    );
  });

  test("the owner's signature of a digest is valid, for that digest only", async () => {
    const { address } = await deployWallet(chain, signer.address);
    const signature = await sign({ hash: DIGEST, privateKey: key, to: "hex" });
    expect(await isValid(address, DIGEST, signature)).toBe(MAGIC);
    expect(await isValid(address, hashMessage("pay more"), signature)).toBe(NO);
    expect(await isValid(wallet, DIGEST, signature)).toBe(NO);
  });

  test("a malformed signature is invalid and does not revert", async () => {
    const { address } = await deployWallet(chain, signer.address);
    const signature = await sign({ hash: DIGEST, privateKey: key, to: "hex" });
    expect(await isValid(address, DIGEST, "0x")).toBe(NO);
    expect(await isValid(address, DIGEST, signature.slice(0, -2) as Hex)).toBe(NO);
    expect(await isValid(address, DIGEST, `${signature}00`)).toBe(NO);
    expect(await isValid(address, DIGEST, `${signature.slice(0, -2) as Hex}1d`)).toBe(NO);
  });

  test("a wallet without an owner accepts no signature", async () => {
    const { address } = await deployWallet(chain, "0x0000000000000000000000000000000000000000");
    expect(await isValid(address, DIGEST, `0x${"00".repeat(65)}`)).toBe(NO);
  });

  test("only the owner executes", async () => {
    await expect(execute(STRANGER, STRANGER)).rejects.toThrow(`NotOwner(address got, address wanted)`);
  });

  test("the owner moves the wallet's USDC, and gets the call's result", async () => {
    await chain.fund(wallet, ONE_USD);
    const before = await chain.balanceOf(STRANGER);
    const { result, receipt } = await execute(OWNER, NETWORK.usdc.address, { data: transferOf(ONE_USD) });
    expect(BigInt(result)).toBe(1n);
    expect(await chain.balanceOf(STRANGER)).toBe(before + ONE_USD);
    const [executed] = parseEventLogs({ abi: SMART_WALLET_ABI, logs: receipt.logs, eventName: "Executed" });
    expect(executed?.args).toMatchObject({ value: 0n, data: transferOf(ONE_USD) });
  });

  test("the owner moves the wallet's ETH", async () => {
    await chain.client.sendTransaction({ account: STRANGER, chain: null, to: wallet, value: 5n });
    const target = privateKeyToAccount(generatePrivateKey()).address;
    await execute(OWNER, target, { value: 5n });
    expect(await chain.client.getBalance({ address: target })).toBe(5n);
  });

  test("a failing call reverts with its own reason", async () => {
    const tooMuch = transferOf(ONE_USD * 1_000_000n);
    await expect(execute(OWNER, NETWORK.usdc.address, { data: tooMuch })).rejects.toThrow("exceeds balance");
  });
});
