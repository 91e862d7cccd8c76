import { join } from "node:path";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { createAccount } from "../../../api/platform/chain/accounts.ts";
import { authorizationTypedData } from "../../../api/platform/chain/authorization.ts";
import { openAccount } from "../../../api/platform/chain/remote-signer.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import type { Address } from "../../../api/platform/wallet.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { buyVerdict, handIn } from "../../support/arbiter/scene.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { buildClef, startClef } from "../../support/payments/clef.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, settlements } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { ARBITER_KEY } from "../../support/service/environment.ts";
import { RELAYER, startService } from "../../support/service/service.ts";

/** go-ethereum's signer, built from its module. */

const clef = buildClef();
const isMissing = "missing" in clef;
if ("missing" in clef) console.log(`clef is skipped: ${clef.missing}`);

test.skipIf(isMissing)(
  "Clef signs transactions, authorizations, and verdicts as the key does, and nothing is charged or lost while Clef is down",
  { timeout: 300_000 },
  async () => {
    if ("missing" in clef) return;
    const folder = await folderForFile("clef-");
    const port = await freePort();
    const start = (name: string) =>
      startClef(clef.path, join(folder, name), { chainId: 8453, keys: [RELAYER.key, ARBITER_KEY], port });
    const first = await start("first");
    const key = { address: RELAYER.address as Address, signerUrls: [first.url] };
    const [remote, local] = [openAccount(key), createAccount(RELAYER.key)];
    const { usdc } = NETWORKS["eip155:8453"];
    const fees = { gas: 90_000n, maxFeePerGas: 3n * 10n ** 9n, maxPriorityFeePerGas: 10n ** 6n };
    const call = { type: "eip1559", chainId: 8453, nonce: 7, to: usdc.address, data: "0xe3ee160e", value: 0n } as const;
    expect(await remote.signTransaction({ ...call, ...fees })).toBe(await local.signTransaction({ ...call, ...fees }));
    const authorization = { from: key.address, to: key.address, value: 1n, validAfter: 0n, validBefore: 2n ** 40n };
    const typed = authorizationTypedData({ ...authorization, nonce: `0x${"07".repeat(32)}` }, NETWORKS["eip155:8453"]);
    expect(await remote.signTypedData(typed)).toBe(await local.signTypedData(typed));
    await expect(remote.signTransaction({ ...call, ...fees, chainId: 84532 })).rejects.toThrow(/refuses: .*chain ?id/i);

    const chain = await forFile(startTestChain());
    const arbiter = privateKeyToAccount(ARBITER_KEY).address.toLowerCase() as Address;
    const service = await forFile(
      startService({
        chain,
        config: { facilitator: { key }, arbiterKey: { address: arbiter, signerUrls: [first.url] } },
      }),
    );
    const signed = await signPayment(await newPayer(chain));
    expect((await post(`${service.url}/test/basic`, v2(signed))).status).toBe(200);
    await chargedOnce(chain, signed);
    const claim = { category: "payload-hash", conditions: { payload_text: "x", expected_sha256: "0".repeat(64) } };
    const { answer, headers } = await buyVerdict(service, await newPayer(chain), claim);
    expect(JSON.stringify(answer.body)).toContain(arbiter);
    expect((await handIn(service, claim, headers)).text).toBe(answer.text);

    await first.stop();
    const later = await signPayment(await newPayer(chain));
    const pay = () => post(`${service.url}/test/basic`, v2(later));
    expectProblem(await pay(), 503, "payment_pending");
    expect(await settlements(chain, later.authorization.from)).toEqual([]);
    await forFile(start("second"));
    await expect.poll(async () => (await pay()).status, { timeout: 30_000, interval: 500 }).toBe(200);
    await chargedOnce(chain, later);
  },
);
