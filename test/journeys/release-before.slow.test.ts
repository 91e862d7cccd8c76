import { execFile, execFileSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { migrate } from "../../scripts/migrate.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { chargedOnce } from "../support/payments/on-chain.ts";
import { post, send, v2 } from "../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../support/payments/signing.ts";
import { type ApiProcess, fundRelayer, startApiProcess } from "../support/service/api-process.ts";
import { createDatabase } from "../support/service/database.ts";

const run = promisify(execFile);

/** The newest release before this commit, or null if there is none. */
function releaseBefore(): string | null {
  if (process.env.RELEASE_BEFORE) return process.env.RELEASE_BEFORE;
  const tags = (...args: readonly string[]) =>
    execFileSync("git", ["tag", "--list", "v*", "--sort=-version:refname", ...args], { encoding: "utf8" })
      .split("\n")
      .filter(Boolean);
  const here = tags("--points-at", "HEAD");
  return tags("--merged", "HEAD").find((tag) => !here.includes(tag)) ?? null;
}

/** Installs a release with its dependencies and returns its folder. */
async function install(release: string): Promise<string> {
  const root = await folderForFile("trust-release-");
  await run("sh", ["-c", `git archive "${release}" | tar -x -C "${root}"`]);
  await run("npm", ["ci", "--omit=dev", "--prefer-offline", "--no-audit", "--no-fund"], { cwd: root });
  return root;
}

test("The previous release runs on this schema next to this one, and each replays the other's responses", async ({
  skip,
}) => {
  const release = releaseBefore();
  if (release === null) return skip("there is no release before this commit");
  const root = await install(release);
  const node = join(root, "node_modules/.bin/node");
  const database = await createDatabase();
  await run(node, ["scripts/migrate.ts"], { cwd: root, env: { DATABASE_URL: database.ownerUrl } });

  const chain = await forFile(startTestChain());
  const sepolia = await forFile(startTestChain({ network: "eip155:84532" }));
  await fundRelayer(chain);
  const plan = { database, baseRpcUrl: chain.rpcUrl, baseSepoliaRpcUrl: sepolia.rpcUrl };
  const before = await forFile(startApiProcess({ ...plan, program: join(root, "api/main.ts") }));

  const sold: { readonly signed: Signed; readonly text: string }[] = [];
  const buy = async ({ url }: ApiProcess) => {
    const signed = await signPayment(await newPayer(chain));
    const { status, text } = await post(`${url}/test/basic`, v2(signed));
    expect([status, text]).toEqual([200, expect.stringContaining('"verdict":"pass"')]);
    sold.push({ signed, text });
  };
  const repeats = async ({ url }: ApiProcess) => {
    for (const { signed, text } of sold) {
      expect((await post(`${url}/test/basic`, v2(signed))).text).toBe(text);
      expect((await send(`${url}/verify?wallet=${signed.authorization.from}`)).status).toBe(200);
    }
  };
  await buy(before);
  await migrate(database.ownerUrl);
  await buy(before);
  const now = await forFile(startApiProcess(plan));
  await repeats(now);
  await buy(now);
  await repeats(before);
  await now.stop();
  await buy(before);
  for (const { signed } of sold) await chargedOnce(chain, signed);
}, 300_000);
