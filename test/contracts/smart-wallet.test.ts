import { encodeFunctionData, type Hex, hashMessage, parseEventLogs } from "viem";
import { generatePrivateKey, privateKeyToAccount, sign } from "viem/accounts";
import { beforeAll, describe, expect, test } from "vitest";
import { NETWORKS } from "../../api/platform/networks.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import { connectUsdc, type UsdcChain } from "../support/chain/usdc-chain.ts";
import { deployWallet, SMART_WALLET_ABI } from "../support/payments/wallets.ts";

const NETWORK = NETWORKS["eip155:8453"];
const OWNER = devAccount(2).address;
const STRANGER = devAccount(3).address;
const ONE_USD = 1_000_000n;
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
