import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { expect, onTestFinished, test } from "vitest";
import { PACKAGES, tarballName } from "../../../api/platform/packages.ts";
import { TARBALLS } from "../../../api/site/packages/tarballs.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { failedStatements, holdExam, outcomes } from "../../support/sellers/held-exam.ts";
import { serveFacilitator } from "../../support/sellers/stock-facilitator.ts";

import { bareEnvironment } from "../../support/service/environment.ts";

const run = promisify(execFile);
const STOCK = ["next@16.4.6", "react@19.3.1", "react-dom@19.3.1", "@x402/next@2.25.0", "@x402/evm@2.25.0"];

/**
 * Installs Next and the stock middleware once for all runs on this machine. Returns null, with a warning, without a
 * registry.
 */
async function installed(): Promise<string | null> {
  const home = join(tmpdir(), `x402-next-16.4.6-2.25.0-${process.getuid?.() ?? "user"}`);
  if (existsSync(home)) return home;
  const work = await mkdtemp(`${home}-`);
  // The paywall is only for browsers and takes half a gigabyte.
  const options = ["--prefix", work, "--legacy-peer-deps", "--no-audit", "--no-fund", "--ignore-scripts"];
  try {
    await run("npm", ["install", ...STOCK, ...options], { cwd: work, timeout: 240_000 });
    await rename(work, home);
    return home;
  } catch {
    console.warn("Next could not be fetched: its test is skipped.");
    return null;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

const SHOP = `import { HTTPFacilitatorClient, x402ResourceServer } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { withX402 } from "@x402/next";
import { replayable } from "agent-payment-trust-replayable/next";
import { cookies } from "next/headers";

const facilitator = new HTTPFacilitatorClient({ url: process.env.FACILITATOR_URL });
const server = new x402ResourceServer(facilitator).register("eip155:8453", new ExactEvmScheme());
const accepts = { scheme: "exact", price: "$0.001", network: "eip155:8453", payTo: process.env.PAY_TO };
let runs = 0;
const poem = async () => {
  (await cookies()).set("sid", "visitor");
  return Response.json({ poem: "rain on the roof", run: ++runs });
};
const sold = (path) => replayable(withX402(poem, { accepts, resource: process.env.SHOP_URL + path }, server));

`;

const stock = await installed();
const chain = await forFile(startTestChain());

test.skipIf(stock === null)(
  "Two Next routes with one price behind the stock middleware reach level full within replayable()",
  { timeout: 400_000 },
  async () => {
    const home = await folderForFile("next-shop-");
    const published = PACKAGES.find(({ folder }) => folder === "replayable");
    const tarball = tarballName(published ?? expect.fail("replayable is not served."));
    await copyFile(join(TARBALLS, tarball), join(home, tarball));
    await run("cp", ["-al", join(stock ?? "", "node_modules"), home]);
    const own = join(home, "node_modules/agent-payment-trust-replayable");
    await mkdir(own, { recursive: true });
    await run("tar", ["xzf", tarball, "-C", own, "--strip-components=1"], { cwd: home });
    await writeFile(join(home, "package.json"), '{"private":true,"type":"module"}');
    for (const path of ["/haiku", "/sonnet"]) {
      await mkdir(join(home, "app", path), { recursive: true });
      const route = `${SHOP}export const dynamic = "force-dynamic";\nexport const GET = sold("${path}");\n`;
      await writeFile(join(home, "app", path, "route.js"), route);
    }
    const facilitator = await serveFacilitator(chain);
    onTestFinished(facilitator.stop);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const env = {
      ...bareEnvironment(),
      NEXT_TELEMETRY_DISABLED: "1",
      FACILITATOR_URL: facilitator.url,
      SHOP_URL: url,
      PAY_TO: "0x00000000000000000000000000000000000c0ffe",
    };
    const next = join(home, "node_modules/next/dist/bin/next");
    await run(process.execPath, [next, "build", "--webpack"], { cwd: home, env });
    const server = spawn(process.execPath, [next, "start", "-H", "127.0.0.1", "-p", `${port}`], {
      cwd: home,
      env,
      stdio: ["ignore", "ignore", "inherit"],
    });
    onTestFinished(() => void server.kill());
    const status = () =>
      fetch(`${url}/haiku`).then(
        ({ status }) => status,
        () => 0,
      );
    await expect.poll(status, { timeout: 30_000 }).toBe(402);
    const other = { url: `${url}/sonnet`, method: "GET", body: null };
    const report = await holdExam(chain, { resource: { url: `${url}/haiku` }, other });
    expect(failedStatements(report)).toEqual([]);
    expect(outcomes(report)).toMatchObject({ binding: "pass", lost_answer: "pass" });
    expect(report.level).toBe("full");
    // A session's headers stay on the response.
    const client = new x402Client().register("eip155:*", new ExactEvmScheme(await newPayer(chain)));
    const sold = await wrapFetchWithPayment(fetch, client)(`${url}/haiku`);
    expect([sold.status, sold.headers.getSetCookie()]).toEqual([200, [expect.stringMatching(/^sid=visitor/)]]);
  },
);
