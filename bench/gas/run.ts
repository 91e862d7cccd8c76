// The escrow's gas against its ceilings, with Circle's token on its own and behind Circle's proxy, as on Base.
// `--write` stores the figures as the snapshot that test/contracts/escrow-gas.test.ts checks the contract against.
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import hre from "hardhat";
import { type Gas, measureGas, USES } from "./measure.ts";

const number = (value: number | null): string => (value === null ? "–" : value.toLocaleString("en-US")).padStart(10);
const uses = Object.keys(USES) as (keyof Gas)[];

await hre.tasks.getTask("build").run({ quiet: true, noTests: true });
const gas = { token: await measureGas("token"), proxied: await measureGas("proxied") };
console.log("gas of one transaction each, 100 USDC, everything cold, optimizer on");
console.log(`${"".padEnd(36)}${"USDC".padStart(10)}${"with proxy".padStart(12)}${"ceiling".padStart(10)}`);
for (const use of uses)
  console.log(`${use.padEnd(36)}${number(gas.token[use])}  ${number(gas.proxied[use])}${number(USES[use])}`);
const missed = uses.filter(
  (use) => Math.max(gas.token[use], gas.proxied[use]) > (USES[use] ?? Number.POSITIVE_INFINITY),
);
console.log(missed.length === 0 ? "every ceiling is kept" : `over the ceiling: ${missed.join(", ")}`);
if (process.argv.includes("--write"))
  writeFileSync(fileURLToPath(new URL("snapshot.json", import.meta.url)), `${JSON.stringify(gas, null, 2)}\n`);
process.exitCode = missed.length === 0 ? 0 : 1;
