import fc from "fast-check";
import hre from "hardhat";
import { type Hex, hashTypedData, parseAbi, publicActions, walletActions } from "viem";
import { generatePrivateKey } from "viem/accounts";
import { afterAll, expect, test } from "vitest";
import { attest } from "../../api/arbiter/attestation.ts";
import { createAccount } from "../../api/platform/chain/accounts.ts";
import { NETWORKS } from "../../api/platform/networks.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { deployContract } from "../support/chain/contracts.ts";

/** `VerdictLib.Outcome`, as a number. */
const OUTCOMES = ["escalate", "release", "refund"] as const;
const ABI = parseAbi([
  "struct Verdict { string id; uint8 outcome; bytes32 conditionsSha256; bytes32 dealRefHash; uint64 issuedAt; }",
  "function digestOf(Verdict verdict) view returns (bytes32)",
]);
const NETWORK = NETWORKS["eip155:8453"];
const ARBITER = createAccount(generatePrivateKey());

const connection = await hre.network.create("simulatedBase");
afterAll(() => connection.close());
const client = (await connection.viem.getTestClient()).extend(publicActions).extend(walletActions);
const roles = [NETWORK.usdc.address, ARBITER.address];
const { address } = await deployContract(client, devAccount(3).address, ["VerdictEscrow", ...roles]);

test("The library's digest of any verdict is viem's for the typed data that the service signs", async () => {
  const facts = fc.record({
    id: fc.string({ unit: "binary", maxLength: 40 }),
    outcome: fc.constantFrom(...OUTCOMES),
    conditionsSha256: fc.stringMatching(/^[0-9a-f]{64}$/),
    dealRef: fc.option(fc.string({ unit: "binary", maxLength: 120 })),
    issuedAt: fc.date({ min: new Date(0), max: new Date("9999-12-31"), noInvalidDate: true }),
  });
  const property = fc.asyncProperty(facts, async (any) => {
    const { domain, types, primaryType, message } = await attest(any, NETWORK.chainId, ARBITER);
    const issuedAt = BigInt(message.issuedAt);
    const verdict = { ...message, outcome: OUTCOMES.indexOf(message.outcome), issuedAt };
    const digest: Hex = await client.readContract({ address, abi: ABI, functionName: "digestOf", args: [verdict] });
    expect(digest).toBe(hashTypedData({ domain, types, primaryType, message: { ...message, issuedAt } }));
  });
  await fc.assert(property, { numRuns: 100 });
});
