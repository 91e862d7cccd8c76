import { describe, expect, test } from "vitest";
import { COMMERCE_PAYMENTS } from "../../../contracts/commerce-payments.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { deployEscrow, deployOperator } from "../../support/escrow/contract.ts";
import { forFile } from "../../support/for-file.ts";
import { startApiProcess } from "../../support/service/api-process.ts";
import { freshDatabase } from "../../support/service/database.ts";
import { ARBITER_KEY } from "../../support/service/environment.ts";

const chain = await forFile(startTestChain());
const escrow = await deployEscrow(chain);
const database = await freshDatabase();

describe("API process with a wrong escrow configuration", () => {
  const refused = async (env: Readonly<Record<string, string>>, baseRpcUrl = chain.rpcUrl) => {
    const plan = { database, baseRpcUrl, baseSepoliaRpcUrl: chain.rpcUrl, env };
    const error = await startApiProcess(plan).then(
      (api) => api.kill().then(() => new Error("it started")),
      (reason: Error) => reason,
    );
    return error.message.replace("The API did not start. ", "");
  };
  /** An operator with escrow and collector swapped. */
  const strangeOperator = async () => {
    const { escrow: custody, collector } = COMMERCE_PAYMENTS;
    return (await deployOperator(chain, { ...COMMERCE_PAYMENTS, escrow: collector, collector: custody })).address;
  };
  const OTHER_KEY = `0x${"c9".repeat(32)}`;

  test.each([
    [
      "another arbiter's key",
      () => ({ ESCROW_ADDRESSES: escrow.address, ARBITER_PRIVATE_KEY: OTHER_KEY }),
      /^The service cannot start: the arbiter of 0x[0-9a-f]{40} is 0x[0-9a-f]{40}, but ARBITER_PRIVATE_KEY belongs to 0x[0-9a-f]{40}$/,
    ],
    [
      "an account",
      () => ({ ESCROW_ADDRESSES: devAccount(7).address, ARBITER_PRIVATE_KEY: ARBITER_KEY }),
      /^The service cannot start: ESCROW_ADDRESSES is wrong: no escrow contract exists at 0x[0-9a-f]{40} on Base$/,
    ],
    [
      "an operator over other contracts",
      async () => ({ ESCROW_ADDRESSES: await strangeOperator(), ARBITER_PRIVATE_KEY: ARBITER_KEY }),
      /^The service cannot start: ESCROW_ADDRESSES is wrong: the operator 0x[0-9a-f]{40} uses 0x[0-9a-fA-F]{40} and 0x[0-9a-fA-F]{40}; expected base\/commerce-payments version 1\.0, 0xBdEA\w+ and 0x0E3d\w+$/,
    ],
  ])("The process exits with one clear message for %s", async (_, env, expected) => {
    const message = await refused(await env());
    expect(message).toMatch(expected);
    expect(message).not.toMatch(/c9c9|a7a7/);
  });
});
