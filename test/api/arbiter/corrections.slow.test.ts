import type { ServerResponse } from "node:http";
import canonicalize from "canonicalize";
import { describe, expect, test } from "vitest";
import { correctVerdict } from "../../../api/arbiter/reach-verdict.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { parseKeySet, verifyDocument } from "../../../packages/verifier/src/index.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { sha256 } from "../../support/arbiter/rows.ts";
import { buyVerdict, DELIVERABLE, recordOf, recordParts, startArbiterScene } from "../../support/arbiter/scene.ts";
import { correct, environmentOf, walkVerdicts } from "../../support/arbiter/verdicts.ts";
import { forFile } from "../../support/for-file.ts";
import { settlements } from "../../support/payments/on-chain.ts";
import { type Answer, send } from "../../support/payments/requests.ts";
import { newPayer } from "../../support/payments/signing.ts";

const DAY_MS = 86_400_000;
const REASON = "the page was read as <b>another</b> one";

const scene = await forFile(startArbiterScene());
const payer = await newPayer(scene.chain);
const pool = await forFile(connect(scene.service.database.apiUrl));
const environment = environmentOf(scene.service);

/** Buys a verdict on a page that does not exist, which refunds. */
async function refunded(path: string) {
  const claim = { category: "http-delivery", conditions: { url: `${scene.shop}${path}` }, deal_ref: path };
  const { answer } = await buyVerdict(scene.service, payer, claim);
  expect(answer.body.verdict).toBe("refund");
  return { id: String(answer.body.id), url: String(answer.body.verdict_url), text: answer.text };
}

const appear = (path: string) => scene.pages.set(path, (_request, response) => response.end(DELIVERABLE));
const page = async (url: string) => (await send(url, { headers: { accept: "text/html" } })).text;
const path = (id: string) => `/arbiter/verdict/${id}`;

/** The links of a verdict to the versions before and after it, without its link to the log. */
const versionLinks = ({ headers }: Answer): readonly string[] =>
  (headers.get("link") ?? "").split(", ").filter((link) => link.includes("-version"));

describe("arbiter:correct", () => {
  test("A correction runs the claim again free of charge and supersedes the verdict, which stays unchanged", async () => {
    const old = await refunded("/late");
    appear("/late");
    const paid = (await settlements(scene.chain, payer.address)).length;
    const { code, output, errors } = await correct(environment, old.id, "--reason", REASON);
    expect({ code, errors }).toEqual({ code: 0, errors: "" });
    const [, id = "", url = ""] = /^release ([0-9a-f]{32})\n(http\S+)\n$/.exec(output) ?? [];
    expect(url).toBe(`${scene.service.url}${path(id)}`);
    expect(await settlements(scene.chain, payer.address)).toHaveLength(paid);

    const record = await recordOf(url);
    expect(record.body).toMatchObject({
      id,
      verdict: "release",
      deal_ref: "/late",
      supersedes: { id: old.id, sha256: sha256(canonicalize(JSON.parse(old.text)) ?? ""), reason: REASON },
      attestation: { message: { id, outcome: "release" } },
    });
    const keys = await parseKeySet((await send(`${scene.service.url}/.well-known/jwks.json`)).text);
    expect((await verifyDocument(record.text, { keys, issuer: scene.service.url })).valid).toBe(true);
    expect(versionLinks(record)).toEqual([`<${path(old.id)}>; rel="predecessor-version"`]);

    const before = await recordOf(old.url);
    expect(before.text).toBe(old.text);
    expect(versionLinks(before)).toEqual([`<${path(id)}>; rel="successor-version"`]);
    expect(await page(old.url)).toMatch(new RegExp(`Superseded.*${path(id)}`));
    const shown = await page(url);
    expect(shown).toMatch(new RegExp(`Supersedes.*${path(old.id)}`));
    expect(shown).toContain("&lt;b&gt;another&lt;/b&gt;");
    const listed = (await send(`${scene.service.url}/arbiter`)).body.corrections as { latest: unknown[] };
    expect(listed.latest[0]).toMatchObject({ id, verdict: "release", supersedes: old.id, supersedes_url: old.url });
    expect(await page(`${scene.service.url}/arbiter`)).toContain(path(id));
    const { verdicts } = await walkVerdicts(scene.service.url);
    expect(verdicts.map((one) => [one.id, one.sha256]).slice(0, 2)).toEqual([
      [id, sha256(record.text)],
      [old.id, sha256(old.text)],
    ]);
  });

  test("A verdict is corrected once, and a correction can be corrected in turn, so versions form a line without branches", async () => {
    const old = await refunded("/twice");
    const first = await correct(environment, old.id, "--reason", "one");
    const [, id = ""] = /^refund ([0-9a-f]{32})\n/.exec(first.output) ?? [];
    expect(await correct(environment, old.id, "--reason", "two")).toEqual({
      code: 1,
      output: "",
      errors: `Verdict ${old.id} has already been corrected by ${id}.\n`,
    });
    const second = await correct(environment, id, "--reason", "three");
    expect(second.code).toBe(0);
    const [, next = ""] = /^refund ([0-9a-f]{32})\n/.exec(second.output) ?? [];
    expect(versionLinks(await recordOf(`${scene.service.url}${path(id)}`))).toEqual([
      `<${path(old.id)}>; rel="predecessor-version"`,
      `<${path(next)}>; rel="successor-version"`,
    ]);
  });

  test("If two operators correct a verdict at the same time, one correction is made and the other operator sees its ID", async () => {
    const old = await refunded("/hurry");
    // Both commands read the page before either one writes.
    const looking: ServerResponse[] = [];
    scene.pages.set("/hurry", (_request, response) => {
      if (looking.push(response) >= 2) for (const one of looking) if (!one.writableEnded) one.writeHead(404).end();
    });
    const reasons = ["one operator", "another operator"] as const;
    const ended = await Promise.all(reasons.map((reason) => correct(environment, old.id, "--reason", reason)));
    const listed = (await send(`${scene.service.url}/arbiter`)).body.corrections as {
      latest: { supersedes: string }[];
    };
    expect(listed.latest.filter(({ supersedes }) => supersedes === old.id)).toHaveLength(1);
    const done = ended.findIndex(({ code }) => code === 0);
    const [, id = ""] = /^refund ([0-9a-f]{32})\n/.exec(ended[done]?.output ?? "") ?? [];
    expect((await recordOf(`${scene.service.url}${path(id)}`)).body.supersedes).toMatchObject({
      reason: reasons[done],
    });
    expect(ended[1 - done]).toEqual({
      code: 1,
      output: "",
      errors: `Verdict ${old.id} has already been corrected by ${id}.\n`,
    });
  });

  test("A correction is accepted until the last millisecond of the seventh day", async () => {
    const old = await refunded("/border");
    const issued = Date.parse(JSON.parse(old.text).issued_at);
    const at = async (age: number) => {
      const parts = await recordParts(scene.service, pool, { now: () => new Date(issued + age) });
      return correctVerdict(parts, old.id, REASON);
    };
    expect(await at(7 * DAY_MS + 1)).toMatchObject({ refused: "too_late" });
    expect(await at(7 * DAY_MS)).toMatchObject({ verdict: { supersedes: old.id } });
  });
});

describe("arbiter:correct on errors", () => {
  const ID = "0".repeat(32);
  test("Invalid arguments and an unknown verdict end the command with code 1 and one message", async () => {
    const cases: [readonly string[], RegExp][] = [
      [[], /^Expected an ID of 32 hex digits.*Usage: npm run arbiter:correct/s],
      [[ID, ID, "--reason", "x"], /^Expected an ID/],
      [[ID, "--reason", "x".repeat(501)], /^Expected an ID/],
      [[ID, "--force"], /^Unknown option '--force'.*Usage/s],
      [[ID, "--reason", "x".repeat(500)], /^There is no verdict 0{32}\.\n$/],
    ];
    await Promise.all(
      cases.map(async ([args, message]) => {
        const { code, output, errors } = await correct(environment, ...args);
        expect([code, output, errors]).toEqual([1, "", expect.stringMatching(message)]);
      }),
    );
  });

  test("An unreachable or foreign database ends the command with code 1 and one message", async () => {
    const unreachable = {
      ...environment,
      DATABASE_URL: `postgres://reader:secret@127.0.0.1:${await freePort()}/trust`,
    };
    const empty = { ...environment, DATABASE_URL: scene.service.database.ownerUrl.replace(/[^/]+$/, "postgres") };
    const ended = [unreachable, empty].map((env) => correct(env, ID, "--reason", "x"));
    for (const { code, output, errors } of await Promise.all(ended)) {
      expect([code, output, errors]).toEqual([1, "", expect.stringMatching(/^The correction failed: [^\n]+\n$/)]);
      expect(errors).not.toContain("secret");
    }
  });
});
