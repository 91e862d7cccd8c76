import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { WINDOW_SECONDS } from "../../../api/certificates/kinds/retry.ts";
import { BEHAVIORAL_PRODUCTS } from "../../../api/certificates/products.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { waitUntil } from "../../../scripts/embedded/wait-until.ts";
import { inShell, type Reader, run } from "../../support/browser/page-code.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { startRegistry } from "../../support/packages/registry.ts";
import { startService } from "../../support/service/service.ts";
import { buy } from "../../support/sessions/agents.ts";

// The program in the response of a failed rehearsal, run as a reader would run it, passes that rehearsal.

const home = await folderForFile("rehearsal-code-");
const registry = await forFile(startRegistry());
const chain = await forFile(startTestChain({ network: NETWORKS["eip155:84532"].id, mining: { everySeconds: 1 } }));
let aheadMs = 0;
const service = await forFile(startService({ chain, now: () => new Date(Date.now() + aheadMs) }));

interface PassingCode {
  readonly file: string;
  readonly text: string;
  readonly install: string;
}

const askResult = async (product: string, wallet: string) => {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ wallet });
  const answer = await fetch(`${service.url}/rehearsal/${product}/result`, { method: "POST", headers, body });
  return (await answer.json()) as { readonly message: string; readonly passing_code: PassingCode };
};

test.each(BEHAVIORAL_PRODUCTS)(
  "The program returned by a failed %s rehearsal passes",
  { timeout: 240_000 },
  async (product) => {
    const key = generatePrivateKey();
    const payer = privateKeyToAccount(key);
    await chain.fund(payer.address, 10_000_000n);
    await buy(`${service.url}/rehearsal/${product}/start`, payer);
    const { passing_code: code } = await askResult(product, payer.address);
    const reader: Reader = { home, env: { PAYER_PRIVATE_KEY: key, ...registry.environment(home) } };
    await inShell(reader, { id: "install", caption: "", text: code.install });
    const running = run(reader, { id: product, caption: code.file, text: code.text });
    if (product === "retry") {
      const isOnlyLate = async () =>
        /window of the lost order ends/.test((await askResult(product, payer.address)).message);
      expect(await Promise.race([waitUntil(isOnlyLate, 120_000), running.then(() => false)])).toBe(true);
      aheadMs = (WINDOW_SECONDS + 5) * 1000;
    }
    expect(await running).toMatch(/status: 'complete'.*rehearsal: true.*verdict: 'pass'/s);
  },
);
