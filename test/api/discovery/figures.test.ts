import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { deployEscrow } from "../../support/escrow/contract.ts";
import { PRINTED, STALE } from "../../support/figures/figures.ts";
import { forFile } from "../../support/for-file.ts";
import { challengeOf, post, send } from "../../support/payments/requests.ts";
import { type ApiProcess, startApiProcess } from "../../support/service/api-process.ts";
import { freshDatabase } from "../../support/service/database.ts";
import { bareEnvironment } from "../../support/service/environment.ts";

const run = promisify(execFile);
const support = (name: string): string => fileURLToPath(new URL(`../../support/figures/${name}`, import.meta.url));
/** Its modules, one by one, so that some can be replaced. */
const MAIN = fileURLToPath(new URL("../../../api/main.ts", import.meta.url));
const OTHER_FIGURES = { NODE_OPTIONS: `--import=${support("other-figures.ts")}` };

const WALLET = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
/** What a path's parameters are; a path with another one needs a record that is not there. */
const ASKED: Readonly<Record<string, string>> = {
  "/verify": `?wallet=${WALLET}`,
  "/credential": "?origin=https://seller.example",
  "/settlement": `?network=base&from=${WALLET}&nonce=0x${"0".repeat(64)}`,
  "{wallet}": WALLET,
};

const base = await forFile(startTestChain());
const sepolia = await forFile(startTestChain({ network: "eip155:84532" }));
const { address: escrow } = await deployEscrow(base);

/** Everything that the service publishes, by name, when its program and the packages' run with this environment. */
async function publishedWith(env: Readonly<Record<string, string>>): Promise<ReadonlyMap<string, string>> {
  const api = await startApiProcess({
    database: await freshDatabase(),
    baseRpcUrl: base.rpcUrl,
    baseSepoliaRpcUrl: sepolia.rpcUrl,
    program: MAIN,
    env: { ...env, ESCROW_ADDRESSES: escrow },
  });
  try {
    const printed = await run(process.execPath, [support("print-texts.ts"), api.url], {
      env: { ...bareEnvironment(), ...env },
      maxBuffer: 2 ** 24,
    });
    const others = Object.entries(JSON.parse(printed.stdout) as Record<string, unknown>);
    const own = [...(await documents(api)), ...(await terms(api))];
    return new Map([...own, ...others.map(([name, text]) => [name, asText(text)] as const)].map(readable));
  } finally {
    await api.stop();
  }
}

const asText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

async function pathsOf({ url }: ApiProcess, method: "get" | "post"): Promise<readonly string[]> {
  const { paths } = JSON.parse((await send(`${url}/openapi.json`)).text) as { paths: Record<string, object> };
  return Object.entries(paths).flatMap(([path, methods]) => (method in methods ? [path] : []));
}

/** Each document and page, in either of its forms. */
async function documents(api: ApiProcess): Promise<readonly (readonly [string, string])[]> {
  const paths = (await pathsOf(api, "get")).map((path) => path.replace("{wallet}", WALLET) + (ASKED[path] ?? ""));
  const known = paths.filter(
    (path) => !path.includes("{") && !/\.(svg|ico|png)$|^\/(receipt|purchases|log\/checkpoint)$/.test(path),
  );
  return Promise.all(
    known.flatMap((path) =>
      ["application/json", "text/html"].map(async (accept) => {
        const { status, text } = await send(api.url + path, { headers: { accept } });
        expect({ path, status }).toEqual({ path, status: 200 });
        return [`${path} as ${accept}`, text] as const;
      }),
    ),
  );
}

/** The 402 of each path that is paid. */
async function terms(api: ApiProcess): Promise<readonly (readonly [string, string])[]> {
  const answers = await Promise.all(
    (await pathsOf(api, "post")).map(async (path) => ({ path, answer: await post(api.url + path) })),
  );
  return answers
    .filter(({ answer }) => answer.status === 402)
    .map(({ path, answer }) => [`the terms of ${path}`, asText([challengeOf(answer), answer.body])]);
}

/** Without styles and shapes, and without numbers that only show how one is written. */
const readable = ([name, text]: readonly [string, string]): readonly [string, string] => [
  name,
  text
    .replaceAll(/<style>.*?<\/style>|<(svg|path|rect|line|circle)\b[^>]*>/gs, "")
    .replaceAll(/\b(like|such as) \\*"?\d+\.\d\d/g, ""),
];

/** Rule 9 of the policy is a frozen text: a version's own figures never change. */
const isFrozen = (name: string, stale: string): boolean => name.startsWith("/arbiter/policy") && /7 days/i.test(stale);

describe("every printed price and limit comes from the value that decides it", () => {
  test("with other prices and limits, no text prints those of before", async () => {
    const texts = await publishedWith(OTHER_FIGURES);
    expect(texts.size).toBeGreaterThan(80);
    const stale = [...texts].flatMap(([name, text]) =>
      STALE.flatMap((pattern) => [...text.matchAll(pattern)])
        .filter(([found]) => !isFrozen(name, found))
        .map(({ 0: found, index }) => `${name}: ${text.slice(Math.max(0, index - 60), index + found.length + 20)}`),
    );
    expect(stale).toEqual([]);
    const all = [...texts.values()].join("\n");
    expect(PRINTED.filter((figure) => !all.includes(figure))).toEqual([]);
  });

  test("as they are, each form of a price or limit that is looked for stands somewhere", async () => {
    const all = [...(await publishedWith({})).values()].join("\n");
    expect(STALE.filter((pattern) => all.match(pattern) === null)).toEqual([]);
  });
});
