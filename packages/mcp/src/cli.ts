#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { privateKeyToAccount } from "viem/accounts";
import { type Policy, parsePolicy } from "../../verifier/src/index.ts";
import { askNode } from "./base-node.ts";
import { createLeftOut } from "./left-out.ts";
import { createBudget } from "./money.ts";
import { askService } from "./payment-state.ts";
import { keptIn } from "./pending-payments.ts";
import { httpService } from "./service.ts";
import { DEFAULT_BUDGET_USD, DEFAULT_LOG_ENTRIES, parseSettings } from "./settings.ts";
import { createShop } from "./shop.ts";
import { stateFolder, textFile } from "./state-folder.ts";
import { toolServer } from "./tool-server.ts";

const USAGE = `The tools of an Agent Payment Trust Service, for an MCP client that starts this program and talks to it over stdio.

  BASE_URL            the service's origin, like https://trust.example
  PAYER_PRIVATE_KEY   the key of a wallet with USDC on Base; without it, paid tools only show their terms
  SESSION_BUDGET_USD  the total that this program may sign for before it exits; default ${DEFAULT_BUDGET_USD}
  PAY_TO_ADDRESS      the only address to pay; default: the address that the service publishes
  BASE_RPC_URL        a node of Base to read payments' status from; default: ask the service
  LOG_POLICY          a file (C2SP tlog-policy) that names the log and witnesses to trust; default: check_credential's caller may
  LOG_ENTRIES         the number of log entries to read per answer, to find a FAIL that it omits; default ${DEFAULT_LOG_ENTRIES}, 0 for none
  XDG_STATE_HOME      the parent of the folder that stores open payments and log entries; default ~/.local/state`;

function main([argument]: readonly string[]): void {
  const isHelp = argument === "--help" || argument === "-h";
  const settings = argument === undefined ? parseSettings(process.env) : { problem: USAGE };
  if ("problem" in settings) {
    console.error(settings.problem);
    process.exitCode = isHelp ? 0 : 2;
    return;
  }
  const logPolicy = settings.logPolicy === null ? null : readPolicy(settings.logPolicy);
  if (logPolicy !== null && "problem" in logPolicy) {
    console.error(logPolicy.problem);
    process.exitCode = 2;
    return;
  }
  const { baseUrl, payerKey, payTo, nodeUrl, logEntries } = settings;
  const service = httpService(baseUrl);
  const payer = payerKey === null ? null : privateKeyToAccount(payerKey);
  const budget = createBudget(settings.budget);
  const folder = stateFolder(process.env, process.platform);
  const pending = keptIn(folder);
  const askPaymentState = nodeUrl === null ? askService(service) : askNode(nodeUrl, service);
  const shop = createShop({ service, payer, payTo, budget, pending, askPaymentState });
  const askLeftOut =
    logPolicy === null || logEntries === 0
      ? null
      : createLeftOut({
          ...{ service, policy: logPolicy, mostEntries: logEntries, store: textFile(folder, baseUrl), pause },
        });
  serveStdio(() => toolServer({ service, shop, payer, logPolicy, askLeftOut }));
}

/** Longer than a reversal usually takes to reach the log. */
const pause = () => new Promise((resolve) => setTimeout(resolve, 15_000));

function readPolicy(file: string): Policy | { problem: string } {
  try {
    return parsePolicy(readFileSync(file));
  } catch (error) {
    return { problem: `LOG_POLICY must be a file in the format of C2SP tlog-policy: ${(error as Error).message}` };
  }
}

main(process.argv.slice(2));
