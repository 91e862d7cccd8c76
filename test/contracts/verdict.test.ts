import fc from "fast-check";
import hre from "hardhat";
import { type Address, type Hex, hashTypedData, keccak256, parseAbi, toHex } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { beforeAll, describe, expect, test } from "vitest";
import { type Attestation, attest, type VerdictFacts } from "../../api/arbiter/attestation.ts";
import { createAccount } from "../../api/platform/chain/accounts.ts";
import { NETWORKS } from "../../api/platform/networks.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { connectUsdc, type UsdcChain } from "../support/chain/usdc-chain.ts";

/** `VerdictLib.Outcome`, as a number. */
const OUTCOMES = ["escalate", "release", "refund"] as const;
const ABI = parseAbi([
  "struct Verdict { string id; uint8 outcome; bytes32 conditionsSha256; bytes32 dealRefHash; uint64 issuedAt; }",
  "constructor(address usdc, address arbiter)",
  "function open(address payee, uint256 amount, bytes32 conditionsSha256, uint64 deadline, uint256 salt) returns (bytes32)",
  "function execute(Verdict verdict, bytes signature)",
  "function takeBack(bytes32 dealRefHash)",
  "function dealRefOf(address payer, uint256 salt) view returns (string)",
  "function digestOf(Verdict verdict) view returns (bytes32)",
  "error NotArbiter(address got, address wanted)",
  "error NotOpen(bytes32 dealRefHash, uint8 got)",
]);
const APPROVE = parseAbi(["function approve(address spender, uint256 value) returns (bool)"]);

const NETWORK = NETWORKS["eip155:8453"];
const ARBITER_KEY = generatePrivateKey();
const SIGN = createAccount(ARBITER_KEY);
const PAYER = devAccount(2).address;
const CARRIER = devAccount(3).address;
const CONDITIONS = "c0".repeat(32);
const HUNDRED_USD = 100_000_000n;
const DAY_S = 86_400;
/** The gas limits with cold storage, 100 USDC, and Circle's token without its proxy. */
const GREATEST_GAS = { release: 66_500, refund: 67_000, escalate: 45_500 } as const;

/** The verdict as its submitter encodes the document's attestation. */
const verdictOf = ({ message }: Attestation) => ({
  ...message,
  outcome: OUTCOMES.indexOf(message.outcome),
  issuedAt: BigInt(message.issuedAt),
});

async function deploy(chain: UsdcChain, arbiter: Address): Promise<Address> {
  const { bytecode } = await hre.artifacts.readArtifact("VerdictEscrow");
  const args = [NETWORK.usdc.address, arbiter] as const;
  const call = { account: CARRIER, chain: null, abi: ABI, bytecode: bytecode as Hex, args };
  const hash = await chain.client.deployContract(call);
  const { contractAddress } = await chain.client.waitForTransactionReceipt({ hash });
  if (!contractAddress) throw new Error("The escrow was not deployed.");
  return contractAddress;
}

describe("a verdict on the chain", () => {
  let chain: UsdcChain;
  let address: Address;
  let salt = 0n;

  beforeAll(async () => {
    chain = await connectUsdc({ title: "", hardhatNetwork: "simulatedBase", network: NETWORK, skipped: null });
    address = await deploy(chain, privateKeyToAddress(ARBITER_KEY));
    const approval = { address: NETWORK.usdc.address, abi: APPROVE, functionName: "approve" } as const;
    const approve = { account: PAYER, chain: null, ...approval, args: [address, 2n ** 200n] } as const;
    await chain.client.waitForTransactionReceipt({ hash: await chain.client.writeContract(approve) });
    // Keeps the balances of the payer and the escrow above zero during the deals.
    await chain.fund(PAYER, 1n);
    await open();
    return () => chain.connection.close();
  });

  const now = async () => Number((await chain.client.getBlock()).timestamp);
  const read = async (functionName: "dealRefOf" | "digestOf", args: readonly unknown[]) =>
    // The union of functions is too complex for viem's types.
    (await chain.client.readContract({ address, abi: ABI, functionName, args } as never)) as Hex;

  /** A deal of 100 USDC whose deadline is a day from now, and its payee, who already holds USDC. */
  const open = async () => {
    salt += 1n;
    const payee = privateKeyToAddress(generatePrivateKey());
    await chain.fund(payee, 1n);
    await chain.fund(PAYER, HUNDRED_USD);
    const deadline = BigInt((await now()) + DAY_S);
    const call = { account: PAYER, chain: null, address, abi: ABI, functionName: "open" } as const;
    const args = [payee, HUNDRED_USD, `0x${CONDITIONS}`, deadline, salt] as const;
    const { status } = await chain.client.waitForTransactionReceipt({
      hash: await chain.client.writeContract({ ...call, args }),
    });
    expect(status).toBe("success");
    return { payee, dealRef: await read("dealRefOf", [PAYER, salt]) };
  };
  const decide = async (outcome: VerdictFacts["outcome"], dealRef: string, sign = SIGN) => {
    const facts = { id: "0123456789abcdef", outcome, conditionsSha256: CONDITIONS, dealRef };
    return attest({ ...facts, issuedAt: new Date(1000 * (await now())) }, NETWORK.chainId, sign);
  };
  const execute = async (attestation: Attestation) => {
    const { request } = await chain.client.simulateContract({
      account: CARRIER,
      address,
      abi: ABI,
      functionName: "execute",
      args: [verdictOf(attestation), attestation.signature],
    });
    return chain.client.waitForTransactionReceipt({ hash: await chain.client.writeContract(request) });
  };
  const passTheDeadline = async () => {
    await chain.client.increaseTime({ seconds: DAY_S });
    await chain.client.mine({ blocks: 1 });
  };

  test("The digest equals viem's for random verdicts", async () => {
    const facts = fc.record({
      id: fc.string({ unit: "binary", maxLength: 40 }),
      outcome: fc.constantFrom(...OUTCOMES),
      conditionsSha256: fc.stringMatching(/^[0-9a-f]{64}$/),
      dealRef: fc.option(fc.string({ unit: "binary", maxLength: 120 })),
      issuedAt: fc.date({ min: new Date(0), max: new Date("9999-12-31"), noInvalidDate: true }),
    });
    const property = fc.asyncProperty(facts, async (any) => {
      const attestation = await attest(any, NETWORK.chainId, SIGN);
      const { domain, types, primaryType, message } = attestation;
      const typed = { domain, types, primaryType, message: { ...message, issuedAt: BigInt(message.issuedAt) } };
      expect(await read("digestOf", [verdictOf(attestation)])).toBe(hashTypedData(typed));
    });
    await fc.assert(property, { numRuns: 100 });
  });

  test("A release that the service signed pays the payee, once", async () => {
    const { payee, dealRef } = await open();
    const attestation = await decide("release", dealRef);
    const { gasUsed } = await execute(attestation);
    expect(await chain.balanceOf(payee)).toBe(HUNDRED_USD + 1n);
    await expect(execute(attestation)).rejects.toThrow("NotOpen");
    expect(gasUsed).toBeLessThanOrEqual(GREATEST_GAS.release);
  });

  test("A refund after the deadline pays the payer", async () => {
    const { payee, dealRef } = await open();
    await passTheDeadline();
    const before = await chain.balanceOf(PAYER);
    const { gasUsed } = await execute(await decide("refund", dealRef));
    expect(await chain.balanceOf(PAYER)).toBe(before + HUNDRED_USD);
    expect(await chain.balanceOf(payee)).toBe(1n);
    expect(gasUsed).toBeLessThanOrEqual(GREATEST_GAS.refund);
  });

  test("An escalation pays no one, and the payer takes the amount back three days later", async () => {
    const { payee, dealRef } = await open();
    await passTheDeadline();
    const before = await chain.balanceOf(PAYER);
    const { gasUsed } = await execute(await decide("escalate", dealRef));
    expect(await chain.balanceOf(payee)).toBe(1n);
    expect(await chain.balanceOf(PAYER)).toBe(before);
    await chain.client.increaseTime({ seconds: 3 * DAY_S });
    const call = { account: PAYER, chain: null, address, abi: ABI, functionName: "takeBack" } as const;
    await chain.client.writeContract({ ...call, args: [keccak256(toHex(dealRef))] });
    expect(await chain.balanceOf(PAYER)).toBe(before + HUNDRED_USD);
    expect(gasUsed).toBeLessThanOrEqual(GREATEST_GAS.escalate);
  });
});
