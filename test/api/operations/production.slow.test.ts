import { execFile } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Address } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { expect, test } from "vitest";
import { startGuarded } from "../../../scripts/embedded/guarded-process.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { startPostgres, withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { bareEnvironment } from "../../support/service/environment.ts";

// Runs docs/production.md block by block, with local addresses in place of its examples.

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PAGE = readFileSync(join(ROOT, "docs/production.md"), "utf8");
const BLOCKS = [...PAGE.matchAll(/^```(\w+)( service)?\n(.*?)^```/gms)].map(
  ([, language = "", service, text = ""]) => ({
    language,
    isService: service !== undefined,
    text,
  }),
);

const folder = await folderForFile("trust-nothing-");
const postgres = await forFile(startPostgres({ directory: join(folder, "postgres"), port: await freePort() }));
const base = await forFile(startTestChain({ mining: { everySeconds: 1 } }));
const sepolia = await forFile(startTestChain({ network: "eip155:84532", mining: { everySeconds: 1 } }));
const github = await forFile(
  serveHttp((_, response) => response.end('{"resources":{"core":{"limit":5000,"remaining":4999}}}')),
);

const port = String(await freePort());
const url = `http://localhost:${port}`;
const payer = generatePrivateKey();
const { host } = new URL(postgres.ownerUrl);

/** The page's examples and their local replacements. */
const HERE: Readonly<Record<string, string>> = {
  "/etc/trust": join(folder, "etc"),
  "https://trust.example": url,
  "PORT=4020": `PORT=${port}`,
  "https://base.example/KEY": base.rpcUrl,
  "https://sepolia.example/KEY": sepolia.rpcUrl,
  "@db.example/": `@${host}/`,
  "GITHUB_TOKEN=github_pat_EXAMPLE": `GITHUB_TOKEN=github_pat_EXAMPLE\nGITHUB_API_URL=${github.url}`,
  "0xYOUR_TEST_KEY": payer,
};
const here = (text: string): string =>
  Object.entries(HERE).reduce((made, [from, to]) => made.replaceAll(from, to), text);

const FILE = join(folder, "etc/trust.env");
/** "Every later command runs with the first file." */
const shell = (text: string): string[] => [
  "-eo",
  "pipefail",
  "-c",
  `set -a; [ ! -e ${FILE} ] || . ${FILE}; set +a\n${text}`,
];
const env = { ...bareEnvironment(), HOME: folder };

const run = (text: string) =>
  new Promise<{ readonly code: number; readonly output: string }>((resolve) => {
    execFile("bash", shell(text), { cwd: ROOT, env, timeout: 400_000 }, (error, output, errors) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: `${output}${errors}` }),
    );
  });

async function succeeds(text: string): Promise<string> {
  const { code, output } = await run(text);
  expect(code, `${text}\n${output}`).toBe(0);
  return output;
}

/** Starts a service of the page as a supervisor would. */
const start = (text: string) =>
  startGuarded({ command: "bash", args: shell(text.replace(/npm run \w+\s*$/, "exec $&")), cwd: ROOT, env });

/** Step 3: "Fund them now." */
async function fund(printed: string): Promise<void> {
  const accounts = [...printed.matchAll(/^(0x[0-9a-fA-F]{40}) {2}(\w+)$/gm)].map(
    ([, address, role]) => [role, address as Address] as const,
  );
  expect(accounts.map(([role]) => role)).toEqual(["facilitator", "arbiter", "exam", "deployer"]);
  for (const [role, address] of accounts)
    if (role === "exam") await sepolia.fund(address, 50_000_000n);
    else for (const chain of [base, sepolia]) await chain.setBalance(address, 20_000_000_000_000_000n);
  await sepolia.fund(privateKeyToAddress(payer), 600_000n);
}

test("The page contains every example that this test replaces", () => {
  expect(Object.keys(HERE).filter((example) => !PAGE.includes(example))).toEqual([]);
});

test("Following the page from nothing yields a service that sells, verifies, releases, and decides", async () => {
  mkdirSync(join(folder, "etc"), { recursive: true });
  const administrator = postgres.ownerUrl.replace(/[^/]+$/, "postgres");
  // The page expects a server without this database and role.
  for (const statement of ["DROP DATABASE trust", "DROP ROLE IF EXISTS trust_index"])
    await withClient(administrator, (client) => client.query(statement));
  const printed: string[] = [];
  for (const { language, isService, text } of BLOCKS) {
    const command = here(text);
    if (language === "sql") {
      await withClient(administrator, async (client) => {
        for (const statement of command.split("\n").filter(Boolean)) await client.query(statement);
      });
    } else if (isService) {
      await forFile(start(command));
    } else if (language === "sh") {
      printed.push(await succeeds(command));
      if (text.includes("npm run keys")) await fund(printed.at(-1) ?? "");
    }
  }
  const all = printed.join("\n");
  expect(all).toContain("\n4 transactions would be sent: ");
  expect(all).toContain("\n4 transactions were sent. ");
  expect(all).toMatch(/note BASE_URL: no response from .* yet/);
  expect(all).toContain("ok   status: every component of version");
  expect(all).toMatch(
    /^bought {4}http.*\nverified {2}verified on the test network eip155:84532 only\nreleased {2}0x[0-9a-f]{64}\nverdict {3}http/m,
  );
  expect(readFileSync(FILE, "utf8")).not.toContain("DEPLOYER_PRIVATE_KEY");
}, 1_200_000);

test("The journal agrees with both chains after the page's steps", async () => {
  expect(await succeeds("npm run reconcile")).toMatch(/base-sepolia, blocks \d+ to \d+: 0 found/);
});

test("A rehearsal database cannot be used for the real network", async () => {
  const { code, output } = await run(
    `MAIN_NETWORK=base ESCROW_ADDRESSES= EVALUATOR_ADDRESS= PORT=${await freePort()} npm run api`,
  );
  expect(code).toBe(1);
  expect(output).toMatch(
    /MAIN_NETWORK gives eip155:8453, but this database belongs to eip155:84532. Set it back, or use an empty database/,
  );
  const badge = await (
    await fetch(
      JSON.parse(await (await fetch(`${url}/verify?wallet=${privateKeyToAddress(payer)}`)).text()).certs[0].badge_url,
    )
  ).text();
  expect(badge).toContain("(Base Sepolia)");
  const page = await (await fetch(`${url}/`, { headers: { accept: "text/html" } })).text();
  expect(page).toContain("This whole installation is a rehearsal");
});
