#!/usr/bin/env node
import { refundCommand, USAGE, UsageError } from "./refund-command.ts";

async function main([name, ...rest]: readonly string[]): Promise<0 | 1 | 2> {
  if (name === "--help" || name === "-h") {
    console.log(USAGE);
    return 0;
  }
  try {
    if (name !== "refund") throw new UsageError(USAGE);
    return await refundCommand(rest);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return 2;
  }
}

process.exitCode = await main(process.argv.slice(2));
