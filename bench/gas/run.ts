// Compares the gas of the contracts with their ceilings and with alternatives, using Circle's USDC behind Circle's proxy,
// as on Base. `--write` stores the figures in contracts/gas-snapshot.json, with which the tests compare.
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import hre from "hardhat";
import { ANCHORS, measureAnchors } from "../../test/contracts/gas/anchors.ts";
import { CEILINGS, measureBatches, SIZES } from "../../test/contracts/gas/batches.ts";
import { type Gas, measureGas, USES } from "../../test/contracts/gas/escrow.ts";
import { EVALUATIONS, measureEvaluator } from "../../test/contracts/gas/evaluator.ts";
import { measureOperator, OPERATOR_USES, OVERHEADS } from "../../test/contracts/gas/operator.ts";
import { measureOutcomes, OUTCOME_CEILING, OUTCOME_KINDS, OUTCOME_SIZES } from "../../test/contracts/gas/outcomes.ts";
import { type Figure, report } from "../table.ts";

await hre.tasks.getTask("build").run({ quiet: true, noTests: true });
const gas = {
  proxied: await measureGas(),
  operator: await measureOperator(),
  batches: await measureBatches(),
  outcomes: await measureOutcomes(),
  evaluator: await measureEvaluator(),
  anchors: await measureAnchors(),
};

const below = (name: string, ours: number, atMost: number | null): Figure =>
  atMost === null ? { name, ours } : { name, ours, atMost };
const entries = <Name extends string>(ceilings: Readonly<Record<Name, number | null>>) =>
  Object.entries(ceilings) as [Name, number | null][];

const tables: Readonly<Record<string, readonly Figure[]>> = {
  "the escrow, 100 USDC": entries<keyof Gas>(USES).map(([use, most]) => below(use, gas.proxied[use], most)),
  "the operator, and a plain account instead": OPERATOR_USES.flatMap((use) => {
    const { operator, direct } = gas.operator;
    return [
      { name: use, ours: operator[use], peer: direct[use] },
      below(`${use}, more than the peer`, operator[use] - direct[use], OVERHEADS[use]),
    ];
  }),
  "a payment of 0.25 USDC in a batch, and a single payment": [
    ...SIZES.flatMap((size) => [
      below(`one of ${size}`, gas.batches.batch[size], CEILINGS[size]),
      { name: `one of ${size}, over a single payment`, ours: gas.batches.batch[size], peer: gas.batches.alone },
      { name: `one of ${size} through Multicall3`, ours: gas.batches.multicall3[size], peer: gas.batches.alone },
    ]),
    { name: "the smallest cap for the most expensive payment", ours: gas.batches.leastCap },
    ...Object.entries(gas.batches.tenth).map(([change, ours]) => ({ name: `a tenth payer that ${change}`, ours })),
  ],
  "an outcome of 0.01 USDC in a batch, and a single outcome": OUTCOME_KINDS.flatMap((kind) => [
    ...OUTCOME_SIZES.map((size) => ({
      ...{ name: `${kind}, one of ${size}`, ours: gas.outcomes.batch[kind][size], peer: gas.outcomes.alone },
    })),
    below(`${kind}, in the largest`, gas.outcomes.batch[kind][50], OUTCOME_CEILING),
  ]),
  "a verdict on an ERC-8183 job, and an anchor of the log": [
    ...entries(EVALUATIONS).map(([use, most]) => below(use, gas.evaluator[use], most)),
    ...entries(ANCHORS).map(([use, most]) => below(use, gas.anchors[use], most)),
  ],
};
const isKept = Object.entries(tables)
  .map(([title, figures]) => report(`gas, ${title}`, figures))
  .every(Boolean);
if (process.argv.includes("--write"))
  writeFileSync(
    fileURLToPath(new URL("../../contracts/gas-snapshot.json", import.meta.url)),
    `${JSON.stringify(gas, null, 2)}\n`,
  );
process.exitCode = isKept ? 0 : 1;
