import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { type Address, type Hex, keccak256, parseAbi, toHex } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Attestation } from "../../../api/arbiter/attestation.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { type ArbiterScene, buyVerdict, type Claim, startArbiterScene } from "../../support/arbiter/scene.ts";
import { artifactOf } from "../../support/chain/contracts.ts";
import { newPayer } from "../../support/payments/signing.ts";

// A third party's escrow opens a deal on chain, buys the verdict, and submits it to its own contract.

const ABI = parseAbi([
  "struct Verdict { string id; uint8 outcome; bytes32 conditionsSha256; bytes32 dealRefHash; uint64 issuedAt; }",
  "constructor(address usdc, address arbiter)",
  "function open(address payee, uint256 amount, bytes32 conditionsSha256, uint64 deadline, uint256 salt) returns (bytes32)",
  "function execute(Verdict verdict, bytes signature)",
  "function dealRefOf(address payer, uint256 salt) view returns (string)",
  "error NotArbiter(address got, address wanted)",
  "error NotOpen(bytes32 dealRefHash, uint8 got)",
]);
const APPROVE = parseAbi(["function approve(address spender, uint256 value) returns (bool)"]);
/** `VerdictLib.Outcome`, as a number. */
const OUTCOMES = ["escalate", "release", "refund"] as const;
const [BUYER, CARRIER] = [devAccount(2).address, devAccount(3).address];
const PRICE = 5_000_000n;

let scene: ArbiterScene;
let address: Address;
let salt = 0n;

beforeAll(async () => {
  scene = await startArbiterScene();
  const { chain, service } = scene;
  const { attestation } = JSON.parse(await (await fetch(`${service.url}/arbiter`)).text());
  const { bytecode } = artifactOf("VerdictEscrow");
  const { address: usdc } = chain.network.usdc;
  const args = [usdc, attestation.signer] as const;
  const hash = await chain.client.deployContract({ account: CARRIER, abi: ABI, bytecode, args });
  address = (await chain.client.waitForTransactionReceipt({ hash })).contractAddress as Address;
  const approve = { address: usdc, abi: APPROVE, functionName: "approve", args: [address, 2n ** 200n] } as const;
  await mined(await chain.client.writeContract({ account: BUYER, ...approve }));
});
afterAll(() => scene?.stop());

const mined = async (hash: Hex): Promise<void> => {
  expect((await scene.chain.client.waitForTransactionReceipt({ hash })).status).toBe("success");
};

/** Opens a deal over the content of a URL. Its conditions are fixed on chain before the verdict is bought. */
async function openDeal(path: string, seconds = 3_600) {
  const claim = { category: "http-delivery", conditions: { url: `${scene.shop}${path}` } };
  const conditions: Hex = `0x${createHash("sha256")
    .update(canonicalize(claim) as string)
    .digest("hex")}`;
  const payee = privateKeyToAddress(generatePrivateKey());
  const { client } = scene.chain;
  salt += 1n;
  const deadline = (await client.getBlock()).timestamp + BigInt(seconds);
  const args = [payee, PRICE, conditions, deadline, salt] as const;
  await mined(await client.writeContract({ account: BUYER, address, abi: ABI, functionName: "open", args }));
  const dealRef = await client.readContract({ address, abi: ABI, functionName: "dealRefOf", args: [BUYER, salt] });
  return { payee, claim: { ...claim, deal_ref: dealRef } };
}

const verdictOf = ({ message }: Attestation) => ({
  ...message,
  outcome: OUTCOMES.indexOf(message.outcome),
  issuedAt: BigInt(message.issuedAt),
});

/** Simulates first, so that a revert has its named error. */
async function execute(verdict: ReturnType<typeof verdictOf>, signature: Hex): Promise<void> {
  const args = [verdict, signature] as const;
  const call = { account: CARRIER, address, abi: ABI, functionName: "execute", args } as const;
  await scene.chain.client.simulateContract(call);
  await mined(await scene.chain.client.writeContract(call));
}

async function buy(claim: Claim): Promise<Attestation> {
  const { answer } = await buyVerdict(scene.service, await newPayer(scene.chain), claim);
  return answer.body.attestation as Attestation;
}

const balance = (account: Address): Promise<bigint> => scene.chain.usdcBalance(account);

describe("a caller's escrow", () => {
  test("A verdict bought over x402 makes the caller's contract pay the seller exactly once", async () => {
    const { payee, claim } = await openDeal("/report");
    const attestation = await buy(claim);
    expect(attestation.message).toMatchObject({ outcome: "release", dealRefHash: keccak256(toHex(claim.deal_ref)) });
    await execute(verdictOf(attestation), attestation.signature);
    expect(await balance(payee)).toBe(PRICE);
    await expect(execute(verdictOf(attestation), attestation.signature)).rejects.toThrow(/NotOpen/);
  });
});
