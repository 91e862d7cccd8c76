import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { PACKAGES, packageUrl, tarballName } from "../../api/platform/packages.ts";
import {
  codeOn,
  inShell,
  type PageCode,
  type Reader,
  runAsPrinted,
  save,
  serveAsPrinted,
} from "../support/browser/page-code.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { deployEscrow, deployOperator } from "../support/escrow/contract.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { installAsPrinted, newNextProject, nextCommands } from "../support/packages/next.ts";
import { linkOwn } from "../support/packages/registry.ts";
import { newPayer } from "../support/payments/signing.ts";
import { expectGate, type Send, SHOP, startGateScene } from "../support/sellers/gate-scene.ts";
import { failedStatements, holdExam, outcomes } from "../support/sellers/held-exam.ts";

// The Next shops of the documentation, of the integrations page, and of `replayable()` are routes of one project. It is
// installed and built with the pages' commands, and started with each page's own.

const chain = await forFile(startTestChain());
const [escrow, operator] = [await deployEscrow(chain), await deployOperator(chain)];
const scene = await startGateScene({ chain, config: { escrowAddresses: [escrow.address, operator.address] } });
const { service } = scene;
const escrowPage = await codeOn(`${service.url}/docs/escrow`);
const gatePage = await codeOn(`${service.url}/integrations`);
const escrowed = { code: escrowPage.block("shop-next"), ...nextCommands(escrowPage.block("shop-next-run")) };
const gated = { code: gatePage.block("next"), ...nextCommands(gatePage.block("next-run")) };

const replayed = (path: string): PageCode => ({
  id: path,
  caption: `app/${path}/route.js`,
  text: `import { HTTPFacilitatorClient, x402ResourceServer } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { withX402 } from "@x402/next";
import { replayable } from "agent-payment-trust-replayable/next";
import { cookies } from "next/headers";

const facilitator = new HTTPFacilitatorClient({ url: process.env.FACILITATOR_URL });
const server = new x402ResourceServer(facilitator).register("eip155:8453", new ExactEvmScheme());
const accepts = { scheme: "exact", price: "$0.001", network: "eip155:8453", payTo: process.env.PAY_TO };
const resource = \`http://localhost:\${process.env.PORT}/${path}\`;
let runs = 0;
const poem = async () => {
  (await cookies()).set("sid", "visitor");
  return Response.json({ poem: "rain on the roof", run: ++runs });
};
export const dynamic = "force-dynamic";
export const GET = replayable(withX402(poem, { accepts, resource }, server));
`,
});

const withoutService = ({ text, ...code }: PageCode): PageCode => ({
  ...code,
  text: text.replaceAll(service.url, scene.closedUrl),
});

/** The gate's route at another path, with a change. */
const gatedAt = (path: string, from = "", to = ""): PageCode => {
  expect(gated.code.text).toContain(from);
  return { ...gated.code, caption: `app/${path}/route.js`, text: gated.code.text.replace(from, to) };
};

/** Builds the project without a key or an address in its environment. */
async function built(): Promise<Reader | null> {
  const project = await newNextProject();
  if (project === null) return null;
  for (const { install } of [escrowed, gated]) await installAsPrinted(project, install);
  const published = PACKAGES.find(({ folder }) => folder === "replayable") ?? expect.fail("replayable is not served.");
  const url = packageUrl(service.url, published);
  await installAsPrinted(project, {
    ...gated.install,
    text: `curl -fO ${url}\nnpm install ./${tarballName(published)}`,
  });
  const routes = [
    ...[escrowed.code, gated.code, replayed("poem"), replayed("sonnet")],
    withoutService(gatedAt("without-service")),
    gatedAt("read", "export const POST", "export const GET"),
    gatedAt("unmatched", "server, { accepts }", 'server, { "POST /elsewhere": { accepts } }'),
  ];
  for (const route of routes) await save(project, route);
  expect(escrowed.build.text).toBe(gated.build.text);
  await inShell(project, gated.build);
  return project;
}

const project = await built();
const values = { FACILITATOR_URL: scene.facilitatorUrl, PAY_TO: SHOP };

/** Starts the gate's and the replayable routes with the integrations page's command. */
const serveGated = (): Promise<string> =>
  serveAsPrinted(project ?? expect.fail("Next is not installed."), { code: gated.code, commands: gated.start, values });

test("Each page's commands install every package that its Next shop imports", () => {
  for (const { code, install } of [escrowed, gated]) {
    const imported = [...code.text.matchAll(/ from "((?:@[^/"]+\/)?[^/"]+)/g)].map(([, name]) => name);
    const installed = install.text.split(/\s+/).map((word) => word.replaceAll(/^\.\/|-[\d.]+\.tgz$/g, ""));
    expect(imported).not.toEqual([]);
    expect(installed).toEqual(expect.arrayContaining(imported));
  }
});

test.skipIf(project === null)("The documentation's Next shop sells in escrow", async () => {
  const merchant = generatePrivateKey();
  await chain.setBalance(privateKeyToAccount(merchant).address, 10n ** 18n);
  const origin = await serveAsPrinted(project ?? expect.fail("Next is not installed."), {
    code: escrowed.code,
    commands: escrowed.start,
    values: { MERCHANT_PRIVATE_KEY: merchant, BASE_RPC_URL: chain.rpcUrl },
  });
  expect((await fetch(`${origin}/haiku`, { method: "POST" })).status).toBe(402);
  const home = await folderForFile("next-buyer-");
  for (const name of ["@x402/fetch", "@x402/evm", "viem"]) await linkOwn(home, name);
  const payer = generatePrivateKey();
  await chain.fund(privateKeyToAccount(payer).address, 10_000_000n);
  const [command = ""] = escrowPage.block("buyer-run").text.split("\n").slice(-1);
  const output = await runAsPrinted(
    { home, env: { SHOP_URL: `${origin}/haiku` } },
    {
      code: escrowPage.block("buyer"),
      commands: { ...escrowPage.block("buyer-run"), text: command },
      values: { PAYER_PRIVATE_KEY: payer },
    },
  );
  expect(output).toMatch(/^\{ haiku: 'An old silent pond' \} release\n$/m);
});

test.skipIf(project === null)("The Next shop sells only to verified agents", async () => {
  const origin = await serveGated();
  const post =
    (path: string): Send =>
    (headers) =>
      fetch(`${origin}/${path}`, { method: "POST", headers });
  await expectGate(scene, post("paid/haiku"), post("without-service"));
  for (const method of ["GET", "HEAD"]) expect((await fetch(`${origin}/read`, { method })).status).toBe(402);
  expect((await post("unmatched")({})).status).toBe(500);
});

test.skipIf(project === null)(
  "Two Next routes with one price behind the stock middleware reach level full within replayable()",
  async () => {
    const origin = await serveGated();
    const other = { url: `${origin}/sonnet`, method: "GET", body: null };
    const report = await holdExam(chain, { resource: { url: `${origin}/poem` }, other });
    expect(failedStatements(report)).toEqual([]);
    expect(outcomes(report)).toMatchObject({ binding: "pass", lost_answer: "pass" });
    expect(report.level).toBe("full");
    // A session's headers stay on the response.
    const client = new x402Client().register("eip155:*", new ExactEvmScheme(await newPayer(chain)));
    const sold = await wrapFetchWithPayment(fetch, client)(`${origin}/poem`);
    expect([sold.status, sold.headers.getSetCookie()]).toEqual([200, [expect.stringMatching(/^sid=visitor/)]]);
  },
);
