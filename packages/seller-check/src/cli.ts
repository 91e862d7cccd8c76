#!/usr/bin/env node
import { setTimeout as sleep } from "node:timers/promises";
import { privateKeyToAccount } from "viem/accounts";
import { chainLedger } from "./chain-ledger.ts";
import { examine } from "./exam/examine.ts";
import { httpTransport } from "./http-transport.ts";
import { readOrder, UsageError } from "./order.ts";
import { reportJson, reportText } from "./report.ts";

async function main(args: readonly string[]): Promise<0 | 1> {
  const { privateKey, rpcUrl, json, ...order } = readOrder(args, process.env);
  const ledger = await chainLedger(rpcUrl);
  const parts = { ledger, payer: privateKeyToAccount(privateKey), transport: httpTransport(), sleep };
  const { asset, ceiling } = order;
  const payable = { network: ledger.network, asset, ceiling };
  const report = await examine({ resource: order.resource, other: order.other, payable }, parts);
  console.log(json ? JSON.stringify(reportJson(report), null, 2) : reportText(report));
  return report.level === "full" ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2)).catch((error: unknown) => {
  const message = error instanceof Error ? error.message : String(error);
  console.error(
    error instanceof UsageError ? message : `The exam could not be held, and nothing was judged: ${message}`,
  );
  return 2;
});
