import {
  BAITED_KINDS,
  type BaitedKind,
  type BehavioralProduct,
  LATE_SECONDS,
  type PassingCode,
  RECORDED,
  REHEARSAL,
  retry,
  type TestMode,
  WINDOW_SECONDS,
} from "../certificates/index.ts";
import type { CodeBlock } from "../platform/page/page.ts";
import { PAYER, payingClient } from "./samples.ts";

/** The packages that the programs import. */
const TEST_IMPORTS = "@x402/fetch @x402/evm viem";

// One complete program for each behavioral test. A test extracts each block from its page, runs it, and expects a PASS.

/** The part of a program that takes both orders and then gets the result. */
const takeOrders = (baseUrl: string, { name }: TestMode, product: string): string => `
const start = await fetchAndPay("${baseUrl}/${name}/${product}/start", { method: "POST" });
const { next } = await start.json();

// Two orders in random sequence. The client's policy pays one and refuses the other.
for (const order of [1, 2]) {
  try {
    const { status } = await fetchAndPay(next.url, { method: "POST" });
    console.log(order, "paid", status);
  } catch (refusal) {
    console.log(order, "refused:", refusal.message);
  }
}

const result = await fetch("${baseUrl}/${name}/${product}/result", {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ wallet: payer.address }),
});
console.log(await result.json()); // status "complete"${name === RECORDED.name ? ", and the certificate" : ""}
`;

/** A program for a test with a bait: only the client's policy differs. */
const takeBaitedTest = (baseUrl: string, mode: TestMode, { product, lesson: { node } }: BaitedKind): CodeBlock => ({
  id: `${product}-test`,
  caption: `${product}-test.mjs`,
  text: `${PAYER}
${node.setup}
const client = new x402Client()
  .register("${mode.network}", new ExactEvmScheme(payer))
  .registerPolicy(${node.policy});
const fetchAndPay = wrapFetchWithPayment(fetch, client);
${takeOrders(baseUrl, mode, product)}`,
});

const takeRetryTest = (baseUrl: string, mode: TestMode): CodeBlock => ({
  id: "retry-test",
  caption: "retry-test.mjs",
  text: `import { setTimeout as sleep } from "node:timers/promises";
${payingClient(mode.network, "fetchAgain")}
/** Resends a request, payment header included, until it gets a response. Keep the retry inside the payment; outside it, each try would sign and pay again. */
async function fetchAgain(input, init) {
  const request = new Request(input, init);
  for (let tries = 1; ; tries++) {
    try {
      const answer = await fetch(request.clone(), { signal: AbortSignal.timeout(${(LATE_SECONDS / 3) * 1000}) });
      if (answer.status < 500 || tries === 10) return answer;
    } catch (error) {
      if (tries === 10) throw error;
    }
    await sleep(2000);
  }
}

const start = await fetchAndPay("${baseUrl}/${mode.name}/${retry.product}/start", { method: "POST" });
const { next } = await start.json();

// Two fair orders. The response to one of them is dropped after it is paid.
for (const url of [next.url, next.url.replace("order=1", "order=2")]) {
  const { status } = await fetchAndPay(url, { method: "POST" });
  console.log("paid", status);
}

// The result is ready ${WINDOW_SECONDS} seconds after the dropped response.
for (;;) {
  const answer = await fetch("${baseUrl}/${mode.name}/${retry.product}/result", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ wallet: payer.address }),
  });
  const result = await answer.json();
  console.log(result); // status "incomplete" until then, and finally "complete" with the certificate
  if (result.status !== "incomplete") break;
  await sleep(15_000);
}
`,
});

/** Returns a program that passes the test. */
export function takeTest(product: BehavioralProduct, baseUrl: string, mode = RECORDED): CodeBlock {
  const baited = BAITED_KINDS.find((kind) => kind.product === product);
  return baited === undefined ? takeRetryTest(baseUrl, mode) : takeBaitedTest(baseUrl, mode, baited);
}

/** The program that a rehearsal shows to an agent that failed. */
export const passingCode =
  (baseUrl: string): PassingCode =>
  (product) => {
    const { id = "", caption, text } = takeTest(product, baseUrl, REHEARSAL);
    return { file: caption, text, install: `npm install ${TEST_IMPORTS}`, docs: `${baseUrl}/docs#${id}` };
  };
