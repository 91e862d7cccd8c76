import type { FreeTool } from "../free-tool.ts";
import { checkCredential } from "./check-credential.ts";
import { arbiterPolicy, escrowInfo, listTests } from "./documents.ts";
import { settlementStatus } from "./settlement-status.ts";
import { verifyAgent } from "./verify-agent.ts";
import { verifySeller } from "./verify-seller.ts";

/** The tools that need no key. The service serves the same ones at `POST /mcp`. */
export const FREE_TOOLS: readonly FreeTool[] = [
  verifyAgent,
  verifySeller,
  checkCredential,
  listTests,
  arbiterPolicy,
  escrowInfo,
  settlementStatus,
];
