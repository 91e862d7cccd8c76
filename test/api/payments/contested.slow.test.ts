import { type Address, encodeFunctionData, type Hex, type LocalAccount } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { startHoldingNode } from "../../support/chain/nodes.ts";
import { forFile } from "../../support/for-file.ts";
import {
  expectNoSignatureAnywhere,
  expectPaymentRequired,
  expectProblem,
} from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged, settlements } from "../../support/payments/on-chain.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signCancellation, signPayment } from "../../support/payments/signing.ts";
import { binary } from "../../support/service/database.ts";
import { ALONE, RELAYER, startService } from "../../support/service/service.ts";

const SOMEBODY = devAccount(8).address;
/** Above the relayer's offer, so this transaction comes first in its block. */
const URGENT = 100_000_000_000n;
const soon = { timeout: 20_000, interval: 50 };

let payer: LocalAccount;
let signed: Signed;

const chain = await forFile(startTestChain({ slotsInAnEpoch: 3 }));
// anvil knows the state of loaded blocks only at its head, so the finalized block must be one that it mined.
await chain.mine(10);
const node = await forFile(startHoldingNode(chain));
const service = await forFile(startService({ chain, config: { ...ALONE, rpcUrls: eachNetwork(() => node.url) } }));

beforeEach(async () => {
  payer = await newPayer(chain);
  signed = await signPayment(payer);
});

const pay = (): Promise<Answer> => post(`${service.url}/test/basic`, v2(signed));

/** Submits a token call that is mined ahead of all other transactions. */
const call = (data: Hex): Promise<Hex> =>
  chain.client.sendTransaction({
    account: devAccount(0),
    to: chain.network.usdc.address,
    data,
    gas: 200_000n,
    maxFeePerGas: 2n * URGENT,
    maxPriorityFeePerGas: URGENT,
  });

const transfer = ({ authorization, signature }: Signed): Promise<Hex> => {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const args = [from, to, value, validAfter, validBefore, nonce, signature] as const;
  return call(encodeFunctionData({ abi: USDC_ABI, functionName: "transferWithAuthorization", args }));
};

async function cancellation(): Promise<Hex> {
  const { nonce } = signed.authorization;
  const signature = await signCancellation(payer, chain.network, { authorizer: payer.address, nonce });
  return call(
    encodeFunctionData({ abi: USDC_ABI, functionName: "cancelAuthorization", args: [payer.address, nonce, signature] }),
  );
}

const spending = async (to: Address): Promise<Hex> =>
  transfer(await signPayment(payer, { to, nonce: signed.authorization.nonce }));

/** Runs `act` after the service has simulated the transfer and before it submits it. */
async function beforeSubmission(act: () => Promise<Hex>): Promise<{ answer: Answer; transaction: Hex }> {
  const submitting = node.hold("eth_estimateGas", payer.address);
  const answering = pay();
  await submitting.reached;
  const transaction = await act();
  await chain.client.waitForTransactionReceipt({ hash: transaction });
  submitting.release();
  return { answer: await answering, transaction };
}

/** Runs `act` while the relayer's transaction is in the pool, so that the act is mined first. */
async function beforeItsBlock(act: () => Promise<Hex>): Promise<{ answer: Answer; transaction: Hex }> {
  await chain.client.setAutomine(false);
  try {
    const answering = pay();
    const pending = async () => (await chain.client.getTxpoolStatus()).pending;
    await expect.poll(pending, soon).toBe(1);
    const transaction = await act();
    await expect.poll(pending, soon).toBe(2);
    await chain.mine();
    return { answer: await answering, transaction };
  } finally {
    await chain.client.setAutomine(true);
  }
}

const relayed = () => chain.client.getTransactionCount({ address: RELAYER.address });

describe.each([
  ["between the check and the submission", beforeSubmission, 0],
  ["while the relayer's transaction is pending", beforeItsBlock, 1],
] as const)("%s", (_, meanwhile, ours) => {
  test("An authorization that a stranger broadcasts is charged once, and the result names the stranger's transaction", async () => {
    const before = await relayed();
    const { answer, transaction } = await meanwhile(() => transfer(signed));
    expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
    expect(answer.body).toMatchObject({ settlement: { transaction } });
    expect(await settlements(chain, payer.address)).toMatchObject([{ transaction }]);
    expect((await relayed()) - before).toBe(ours);
    const again = await pay();
    expect([again.text, again.headers.get("x-idempotent-replay")]).toEqual([answer.text, "true"]);
    await chargedOnce(chain, signed);
  });

  test.each([
    ["canceled by its payer", () => cancellation()],
    ["whose nonce its payer spends on someone else", () => spending(SOMEBODY)],
  ])(
    "An authorization %s gets 503 until that is final, then 402, and is never charged or submitted again",
    async (__, act) => {
      const before = await relayed();
      const { answer } = await meanwhile(act);
      expectProblem(answer, 503, "payment_pending");
      expectProblem(await pay(), 503, "payment_pending");
      await chain.mine(8);
      await expect.poll(async () => (await row())?.state, soon).toBe("void");
      expect(expectPaymentRequired(await pay())).toMatch(/canceled or spent elsewhere/);
      expect(await row()).toEqual({ state: "void", reason: "nonce_consumed", kept: false });
      await nothingCharged(chain, payer);
      expect((await relayed()) - before).toBe(ours);
    },
  );
});

const row = () =>
  withClient(service.database.ownerUrl, async (client) => {
    const text = "SELECT state, reason, encrypted_signature IS NOT NULL AS kept FROM payment WHERE nonce = $1";
    const values = [binary(signed.authorization.nonce)];
    return (await client.query<{ state: string; reason: string; kept: boolean }>(text, values)).rows[0];
  });

test("No response, log line, or database row contains a plaintext signature", () => expectNoSignatureAnywhere(service));
