import type { PaidTool } from "../paid-tool.ts";
import { arbiterVerify } from "./arbiter-verify.ts";
import { certify } from "./certify.ts";
import { scoreBatch } from "./score-batch.ts";
import { scoreWallet } from "./score-wallet.ts";

/** The tools that pay from the user's wallet. */
export const PAID_TOOLS: readonly PaidTool[] = [scoreWallet, scoreBatch, certify, arbiterVerify];
