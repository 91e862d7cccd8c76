import "./escrow.ts";
import "./head.ts";
import "./usdc.ts";
