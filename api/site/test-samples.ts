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
import { MAIN_NETWORK } from "../platform/networks.ts";
import type { CodeBlock } from "../platform/page/page.ts";
import { PAYING_CLIENT } from "./samples.ts";

/** What the programs import. */
const TEST_IMPORTS = "@x402/fetch @x402/evm viem";

// One complete program for each behavioral test. A test extracts each block from its page, runs it, and expects a PASS.

const IMPORTS = `import { ExactEvmScheme } from "@x402/evm";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const payer = privateKeyToAccount(process.env.PAYER_PRIVATE_KEY);
`;

/** Both orders, and then the result. */
const takeOrders = (baseUrl: string, { name }: TestMode, product: string): string => `
const start = await fetchAndPay("${baseUrl}/${name}/${product}/start", { method: "POST" });
const { next } = await start.json();

// Two orders in random sequence. The client's own policy decides: it pays one and refuses the other.
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
  text: `${IMPORTS}
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
${PAYING_CLIENT.replace(MAIN_NETWORK, mode.network).replace("wrapFetchWithPayment(fetch, client)", "wrapFetchWithPayment(fetchAgain, client)")}
/** Sends a request again, payment header and all, until it is answered. The retry has to be inside the payment: around it, each try signs and pays once more. */
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

// Two fair orders. The answer to one of them gets lost after it was paid.
for (const url of [next.url, next.url.replace("order=1", "order=2")]) {
  const { status } = await fetchAndPay(url, { method: "POST" });
  console.log("paid", status);
}

// The verdict comes ${WINDOW_SECONDS} seconds after the lost answer.
for (;;) {
  const answer = await fetch("${baseUrl}/${mode.name}/${retry.product}/result", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ wallet: payer.address }),
  });
  const result = await answer.json();
  console.log(result); // status "incomplete" until then, and at last "complete" with the certificate
  if (result.status !== "incomplete") break;
  await sleep(15_000);
}
`,
});

/** The program that passes a test. */
export function takeTest(product: BehavioralProduct, baseUrl: string, mode = RECORDED): CodeBlock {
  const baited = BAITED_KINDS.find((kind) => kind.product === product);
  return baited === undefined ? takeRetryTest(baseUrl, mode) : takeBaitedTest(baseUrl, mode, baited);
}

/** The program of a test, as a rehearsal shows it to an agent that failed. */
export const passingCode =
  (baseUrl: string): PassingCode =>
  (product) => {
    const { id = "", caption, text } = takeTest(product, baseUrl, REHEARSAL);
    return { file: caption, text, install: `npm install ${TEST_IMPORTS}`, docs: `${baseUrl}/docs#${id}` };
  };
