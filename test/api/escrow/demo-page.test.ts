import { expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { deployEscrow } from "../../support/escrow/contract.ts";
import { forFile } from "../../support/for-file.ts";
import { send } from "../../support/payments/requests.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const escrow = await deployEscrow(chain);
const service = await forFile(startService({ chain, jobs: false, config: { escrowAddresses: [escrow.address] } }));
const asHtml = { headers: { accept: "text/html" } };

test("the demo is a page for browsers and a document for everybody else", async () => {
  const url = `${service.url}/escrow/demo`;
  const [document, page, forced] = [await send(url), await send(url, asHtml), await send(`${url}?format=json`, asHtml)];
  expect(document.body).toMatchObject({ price: "0.10", contract: expect.stringMatching(/^0x/) });
  expect(forced.body).toEqual(document.body);
  for (const { headers } of [document, page, forced]) expect(headers.get("vary")).toBe("Accept");
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  for (const text of [document.body.contract, document.body.merchant, "<strong>0.10 USDC</strong>"])
    expect(page.text).toContain(String(text));
});

test("where no contract is configured, the demo's page says so", async () => {
  const other = await startService({ chain, jobs: false });
  expect((await send(`${other.url}/escrow/demo`, asHtml)).text).toContain("No escrow contract is configured here");
  await other.stop();
});
