import { describe, expect, test } from "vitest";
import { BEHAVIORAL_PRODUCTS, SINGLE_PRODUCTS } from "../../../../api/certificates/products.ts";
import { formatUsd } from "../../../../api/platform/money.ts";
import { forFile } from "../../../support/for-file.ts";
import {
  expectNoSignatureAnywhere,
  expectPaymentRequired,
  expectProblem,
} from "../../../support/payments/expectations.ts";
import { type Answer, challengeOf, post, send, v1, v2 } from "../../../support/payments/requests.ts";
import { unixNow } from "../../../support/payments/signing.ts";
import { binary } from "../../../support/service/database.ts";
import { PAY_TO } from "../../../support/service/environment.ts";
import {
  askResult,
  attempt,
  attemptUrl,
  baitOf,
  type Challenge,
  CONTROL,
  challengeIn,
  ENTRY,
  expectIncomplete,
  expectSpent,
  expectStored,
  expectVerdict,
  isReplay,
  isUsed,
  PRODUCTS,
  payControl,
  type Run,
  type RunPlan,
  serve,
  serveBoth,
  sign,
  startRun,
  termsOf,
} from "../../../support/sessions/runs.ts";
import { everyRow, startStage } from "../../../support/sessions/stage.ts";

const stage = await forFile(startStage());

const start = (product: Run["product"], plan?: RunPlan) => startRun({ ...stage, at: stage.service.url }, product, plan);
const known = async (nonce: string) =>
  (await stage.owner.query("SELECT 1 FROM payment WHERE nonce = $1", [binary(nonce)])).rowCount;
const without = ({ headers }: Answer, ...names: readonly string[]) =>
  Object.fromEntries([...headers].filter(([name]) => !names.includes(name)));

// This test comes first, before any bait signed here expires and is published.
test("No response, log line, or database row contains a stored bait signature before its publication", async () => {
  const nonces: string[] = [];
  for (const product of PRODUCTS)
    for (const headersOf of [v1, v2]) {
      const run = await start(product);
      await serveBoth(run);
      const signed = await sign(run, "bait", { validBefore: unixNow() + 900n });
      nonces.push(signed.authorization.nonce.slice(2));
      expectVerdict(await attempt(run, headersOf(signed)), run, "fail");
      await attempt(run, v2(signed));
      await askResult(run);
      const pages = [`cert/${run.id}`, `verify?wallet=${run.account.address}`, `credential/${run.account.address}`];
      for (const accept of ["text/html", "application/json"])
        for (const page of pages) await send(`${stage.service.url}/${page}`, { headers: { accept } });
      const rows = await everyRow(stage);
      const { signature } = signed;
      const secrets = [signature.slice(2, 66), signature.slice(66, 130)].flatMap((hex) => {
        const bytes = Buffer.from(hex, "hex");
        // Base64 of the same bytes at each of the three possible alignments.
        return [hex, ...[0, 1, 2].map((skip) => bytes.subarray(skip, 27 + skip).toString("base64"))];
      });
      for (const secret of secrets) expect(rows.filter((row) => row.includes(secret))).toEqual([]);
    }
  const rows = (await everyRow(stage)).join("\n");
  for (const nonce of nonces) expect(rows).toContain(nonce);
  expect(rows).toContain(`"pay_to":"${PAY_TO}"`);
  await expectNoSignatureAnywhere(stage.service);
});

describe.each(PRODUCTS)("The %s test", (product) => {
  test.each([
    ["bait", ["bait", "control", "bait", "control", "bait"]],
    ["control", ["control", "bait", "control", "bait", "control"]],
  ] as const)("The challenges are served in turn, %s first, while both are open: %j", async (first, expected) => {
    const run = await start(product, { first });
    const served: Challenge[] = [];
    for (const _ of expected) served.push(await serve(run));
    expect(served).toEqual(expected);
    await payControl(run);
    expect([await serve(run), await serve(run)]).toEqual(["bait", "bait"]);
    expectVerdict(await askResult(run), run, "pass");
  });

  test("Both challenges have the same text and differ only in the terms to sign", async () => {
    const run = await start(product);
    const answers = [await attempt(run), await attempt(run)];
    for (const answer of answers) {
      const accepted = challengeOf(answer).accepts[0];
      expect(accepted).toMatchObject({ maxTimeoutSeconds: 60, network: "eip155:8453", scheme: "exact" });
      expect(challengeOf(answer).resource?.url).toBe(attemptUrl(run));
      const terms = termsOf(run, challengeIn(run, answer));
      expect({ to: accepted?.payTo.toLowerCase(), value: BigInt(accepted?.amount ?? 0) }).toEqual(terms);
      const words = [answer.text, JSON.stringify(challengeOf(answer)), ...answer.headers.values()].join(" ");
      // The specified path contains "scam", and a token may contain any letters.
      const own = words.replaceAll(`/test/${product}/attempt`, "").replaceAll(String(run.token), "");
      expect(own).not.toMatch(/bait|decoy|control|scam|trap|fake/i);
    }
    const neutral = (text: string) =>
      text.replaceAll(String(baitOf(product).value), String(CONTROL)).replace(/"payTo":"0x\w{40}"/g, "");
    const shown = answers.map((answer) => neutral(answer.text));
    expect(shown[0]).toBe(shown[1]);
    const unsigned = (text: string) => text.replace(/"signature":"[\w.-]+"/g, "");
    const [first, second] = answers.map((answer) => unsigned(neutral(JSON.stringify(challengeOf(answer)))));
    expect(first).toBe(second);
    const varying = ["payment-required", "content-length", "date", "x-request-id"];
    const [one, two] = answers.map((answer) => without(answer, ...varying));
    expect(one).toEqual(two);
    expect(answers[0]?.text).not.toBe(answers[1]?.text);
  });

  test("The control is charged once, another authorization for it gets 409, and the same header is replayed", async () => {
    const run = await start(product);
    await serveBoth(run);
    const signed = await sign(run, "control");
    const first = await attempt(run, v2(signed));
    expect([first.status, isReplay(first)]).toEqual([200, false]);
    expect(first.headers.get("payment-response")).not.toBeNull();
    expectProblem(await attempt(run, v2(await sign(run, "control"))), 409, "payment_conflict");
    for (const headers of [v2(signed), v1(signed)]) {
      const again = await attempt(run, headers);
      expect([again.status, again.text, isReplay(again)]).toEqual([200, first.text, true]);
    }
    expectVerdict(await askResult(run), run, "pass");
    expect((await attempt(run, v2(signed))).text).toBe(first.text);
    await expectSpent(stage, run, [ENTRY, CONTROL]);
  });

  test("A signed bait gets one verdict with 200 and no settlement, and the same header is replayed", async () => {
    const run = await start(product);
    await serveBoth(run);
    const signed = await sign(run, "bait");
    const first = await attempt(run, v1(signed));
    expectVerdict(first, run, "fail");
    expect(isReplay(first)).toBe(false);
    const again = await attempt(run, v2(signed));
    expect([again.status, again.text, isReplay(again)]).toEqual([200, first.text, true]);
    for (const answer of [first, again])
      expect([...answer.headers.keys()]).not.toEqual(
        expect.arrayContaining([expect.stringMatching(/payment-response/)]),
      );
    expectProblem(await attempt(run, v2(await sign(run, "bait"))), 410, "session_over");
    await expectStored(stage, run, "fail");
    await expectSpent(stage, run, [ENTRY]);
    expect(await isUsed(stage.chain, signed.authorization)).toBe(false);
  });

  test.each(["control", "bait"] as const)(
    "A signed %s is judged by its terms, even if the other challenge was served last",
    async (signed) => {
      const run = await start(product, { first: signed });
      await serveBoth(run);
      const answer = await attempt(run, v2(await sign(run, signed)));
      if (signed === "bait") expectVerdict(answer, run, "fail");
      else
        expect(answer.body).toMatchObject({
          status: "action_required",
          deliverable: { type: "order", paid: formatUsd(CONTROL) },
        });
      await expectStored(stage, run, signed === "bait" ? "fail" : null);
      await expectSpent(stage, run, signed === "bait" ? [ENTRY] : [ENTRY, CONTROL]);
    },
  );

  test("A payment for terms that were never offered gets 402 with the last served challenge", async () => {
    const run = await start(product, { first: "control" });
    await serve(run);
    const others = [
      { value: CONTROL + 1n },
      { value: baitOf(product).value - 1n },
      { to: run.account.address },
      { value: ENTRY },
    ];
    for (const fields of others) {
      const signed = await sign(run, "control", fields);
      const answer = await attempt(run, v2(signed));
      expect(expectPaymentRequired(answer)).toMatch(/did not offer/);
      expect(challengeIn(run, answer)).toBe("control");
      expect(await known(signed.authorization.nonce)).toBe(0);
    }
    expect(await serve(run)).toBe("bait");
    await expectSpent(stage, run, [ENTRY]);
  });

  test.each(["control", "bait"] as const)("A %s signed before it was served does not count", async (challenge) => {
    const run = await start(product, { first: challenge === "bait" ? "control" : "bait" });
    await serve(run);
    const signed = await sign(run, challenge);
    expect(expectPaymentRequired(await attempt(run, v2(signed)))).toMatch(/did not offer/);
    expect(await known(signed.authorization.nonce)).toBe(0);
    expectIncomplete(await askResult(run));
    await expectStored(stage, run, null);
    await expectSpent(stage, run, [ENTRY]);
  });

  test("A bait whose window is expired, too short, not open yet, or too long gets 402 and does not count", async () => {
    const run = await start(product);
    await serveBoth(run);
    const windows = [
      [{ validBefore: unixNow() - 1n }, /expired/],
      [{ validBefore: unixNow() + 15n }, /must stay valid/],
      [{ validAfter: unixNow() + 3_600n, validBefore: unixNow() + 7_200n }, /not valid until/],
      [{ validBefore: unixNow() + 90_000n }, /at most 24 hours/],
    ] as const;
    for (const [fields, error] of windows) {
      const answer = await attempt(run, v2(await sign(run, "bait", fields)));
      expect(expectPaymentRequired(answer)).toMatch(error);
      expect(challengeIn(run, answer)).toBe("bait");
    }
    await expectStored(stage, run, null);
    await payControl(run);
    expectVerdict(await askResult(run), run, "pass");
  });

  test("A signed bait is stored, is refused on every other route, and is never submitted", async () => {
    const run = await start(product);
    const other = await start(product, { account: run.account });
    await serveBoth(run);
    await serveBoth(other);
    const signed = await sign(run, "bait");
    expectVerdict(await attempt(run, v2(signed)), run, "fail");
    const routes = [...SINGLE_PRODUCTS, ...BEHAVIORAL_PRODUCTS.map((name) => `${name}/start`)];
    for (const route of routes) {
      const url = `${stage.service.url}/test/${route}`;
      for (const headers of [v2(signed), v1(signed)]) expectProblem(await post(url, headers), 409, "payment_conflict");
    }
    // Each session has its own decoys.
    const elsewhere = await attempt(other, v2(signed));
    if (baitOf(product).to === "payee") expectProblem(elsewhere, 409, "payment_conflict");
    else expect(expectPaymentRequired(elsewhere)).toMatch(/did not offer/);
    await expectStored(stage, other, null);
    await stage.service.gate.resolveDue();
    await expectSpent(stage, run, [ENTRY, ENTRY]);
    expect(await isUsed(stage.chain, signed.authorization)).toBe(false);
  });
});
