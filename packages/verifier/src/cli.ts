#!/usr/bin/env node
import { checkConditions } from "./commands/conditions.ts";
import { checkDocument, USAGE } from "./commands/document.ts";
import { checkLog } from "./commands/log.ts";
import { checkOffer, checkReceipt } from "./commands/offer-receipt.ts";
import { checkProof } from "./commands/proof.ts";
import { checkScore } from "./commands/score.ts";
import { checkSettlement } from "./commands/settlement.ts";
import { checkVerdict } from "./commands/verdict.ts";
import { InputError } from "./refusal.ts";

/**
 * Runs a subcommand and returns its exit code: 0 valid, 1 invalid, 3 valid but not as required. Throws an `InputError`
 * for 2.
 */
export type Command = (args: readonly string[]) => Promise<0 | 1 | 3>;

/** The subcommands by name; the default is `document`. */
const COMMANDS: Readonly<Record<string, Command>> = {
  document: checkDocument,
  proof: checkProof,
  score: checkScore,
  conditions: checkConditions,
  verdict: checkVerdict,
  offer: checkOffer,
  receipt: checkReceipt,
  settlement: checkSettlement,
  log: checkLog,
};

async function main(args: readonly string[]): Promise<0 | 1 | 2 | 3> {
  const [name = "", ...rest] = args;
  if (args.length === 0 || name === "--help" || name === "-h") {
    (args.length === 0 ? console.error : console.log)(USAGE);
    return args.length === 0 ? 2 : 0;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  try {
    return await (command === undefined ? checkDocument(args) : command(rest));
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    console.error(error.message);
    return 2;
  }
}

process.exitCode = await main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error);
  return 2;
});
