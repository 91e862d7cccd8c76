// The gas of the escrow, of the operator, of the evaluator, of anchors and of settlement in batches against their ceilings, with Circle's token on its
// own and behind Circle's proxy, as on Base. `--write` stores the figures as the snapshot that
// test/contracts/escrow-gas.test.ts, settlement-batch-gas.test.ts, outcome-gas.test.ts and others check the contracts against.
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import hre from "hardhat";
import { ANCHORS, measureAnchors } from "./anchors.ts";
import { CEILINGS, CHANGE_NAMES, measureBatches, SIZES } from "./batches.ts";
import { EVALUATIONS, measureEvaluator } from "./evaluator.ts";
import { type Gas, measureGas, USES } from "./measure.ts";
import { measureOperator, OPERATOR_USES, OVERHEADS } from "./operator.ts";
import { measureOutcomes, OUTCOME_CEILING, OUTCOME_KINDS, OUTCOME_SIZES } from "./outcomes.ts";

const number = (value: number | null): string => (value === null ? "–" : value.toLocaleString("en-US")).padStart(10);
const uses = Object.keys(USES) as (keyof Gas)[];

await hre.tasks.getTask("build").run({ quiet: true, noTests: true });
const gas = {
  token: await measureGas("token"),
  proxied: await measureGas("proxied"),
  operator: await measureOperator(),
  batches: await measureBatches(),
  outcomes: await measureOutcomes(),
  evaluator: await measureEvaluator(),
  anchors: await measureAnchors(),
};
console.log("gas of one transaction each, 100 USDC, everything cold, optimizer on");
console.log(`${"".padEnd(36)}${"USDC".padStart(10)}${"with proxy".padStart(12)}${"ceiling".padStart(10)}`);
for (const use of uses)
  console.log(`${use.padEnd(36)}${number(gas.token[use])}  ${number(gas.proxied[use])}${number(USES[use])}`);

const { operator, direct, relayed } = gas.operator;
const overhead = (use: keyof typeof OVERHEADS) => operator[use] - direct[use];
const code = process.env.CANONICAL_CODE === undefined ? "our stand-in" : "the real code";
console.log(`\nthe operator over ${code} of base/commerce-payments, with proxy; direct is an account in its place`);
console.log(`${"".padEnd(36)}${["operator", "direct", "overhead", "ceiling"].map((n) => n.padStart(11)).join("")}`);
for (const use of OPERATOR_USES)
  console.log(`${use.padEnd(36)} ${[operator[use], direct[use], overhead(use), OVERHEADS[use]].map(number).join(" ")}`);
for (const [use, value] of Object.entries(relayed)) console.log(`${`relayed: ${use}`.padEnd(36)} ${number(value)}`);

const { alone, batch, multicall3, leastCap, tenth } = gas.batches;
console.log(`\ngas a payment with proxy, 0.25 USDC; alone ${alone.toLocaleString("en-US")}`);
console.log(
  `${"payments a transaction".padEnd(36)}${["batch", "Multicall3", "ceiling"].map((n) => n.padStart(11)).join("")}`,
);
for (const size of SIZES)
  console.log(
    `${String(size).padEnd(36)} ${number(batch[size])} ${number(multicall3[size])} ${number(CEILINGS[size])}`,
  );
console.log(`\nthe dearest payment needs a cap of ${leastCap.toLocaleString("en-US")}`);
console.log("\ngas that a tenth payer adds to a batch of nine");
for (const change of CHANGE_NAMES) console.log(`${change.padEnd(36)} ${number(tenth[change])}`);

const { outcomes } = gas;
console.log(
  `\ngas an outcome with proxy, holds of 0.01 USDC, ceiling ${OUTCOME_CEILING.toLocaleString("en-US")} in the largest`,
);
console.log(`${"outcomes a transaction".padEnd(36)}${OUTCOME_SIZES.map((size) => String(size).padStart(10)).join("")}`);
for (const kind of OUTCOME_KINDS)
  console.log(`${kind.padEnd(36)}${OUTCOME_SIZES.map((size) => number(outcomes.batch[kind][size])).join("")}`);
console.log(`alone ${number(outcomes.alone)}, the dearest ${number(outcomes.dearest)}`);

console.log("\na verdict that completes an ERC-8183 job of our own job contract, 100 USDC, with proxy");
const evaluations = Object.keys(EVALUATIONS) as (keyof typeof EVALUATIONS)[];
for (const use of evaluations)
  console.log(`${use.padEnd(36)} ${number(gas.evaluator[use])} ${number(EVALUATIONS[use])}`);

console.log("\nan anchor of the log, 32-byte root and size");
const anchors = Object.keys(ANCHORS) as (keyof typeof ANCHORS)[];
for (const use of anchors) console.log(`${use.padEnd(36)} ${number(gas.anchors[use])} ${number(ANCHORS[use])}`);

const missed = [
  ...uses.filter((use) => Math.max(gas.token[use], gas.proxied[use]) > (USES[use] ?? Number.POSITIVE_INFINITY)),
  ...OUTCOME_KINDS.filter((kind) => outcomes.batch[kind][50] > OUTCOME_CEILING),
  ...OPERATOR_USES.filter((use) => overhead(use) > OVERHEADS[use]).map((use) => `the operator's ${use}`),
  ...evaluations.filter((use) => gas.evaluator[use] > EVALUATIONS[use]),
  ...anchors.filter((use) => gas.anchors[use] > (ANCHORS[use] ?? Number.POSITIVE_INFINITY)),
  ...SIZES.filter((size) => batch[size] > CEILINGS[size]).map((size) => `batch of ${size}`),
];
console.log(missed.length === 0 ? "every ceiling is kept" : `over the ceiling: ${missed.join(", ")}`);
if (process.argv.includes("--write"))
  writeFileSync(fileURLToPath(new URL("snapshot.json", import.meta.url)), `${JSON.stringify(gas, null, 2)}\n`);
process.exitCode = missed.length === 0 ? 0 : 1;
