import { MAIN_NETWORK, type Network } from "../platform/networks.ts";
import type { CodeBlock } from "../platform/page/page.ts";

/** A program, and the commands that run it from an empty folder. The reader replaces `0x…` and `https://…`. */
export interface Program {
  readonly file: string;
  readonly text: string;
  readonly run: string;
}

/** The start of a program: a wallet that pays. */
export const PAYER = `import { ExactEvmScheme } from "@x402/evm";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const payer = privateKeyToAccount(process.env.PAYER_PRIVATE_KEY);
`;

/** The same with a client that pays with it. */
export const payingClient = (
  network: Network,
  fetching = "fetch",
): string => `${PAYER}const client = new x402Client().register("${network}", new ExactEvmScheme(payer));
const fetchAndPay = wrapFetchWithPayment(${fetching}, client);
`;

export const PAYING_CLIENT = payingClient(MAIN_NETWORK);

export const VERDICT_CONTRACT: CodeBlock = {
  id: "verdict-contract",
  caption: "Deal.sol, next to VerdictLib.sol",
  text: `// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {VerdictLib} from "./VerdictLib.sol";

contract Deal {
    address public immutable ARBITER;
    bytes32 public immutable CONDITIONS;
    bytes32 public immutable DEAL_REF;

    constructor(address arbiter, bytes32 conditionsSha256, string memory dealRef) {
        ARBITER = arbiter;
        CONDITIONS = conditionsSha256;
        DEAL_REF = keccak256(bytes(dealRef));
    }

    /// Whether to pay the payee. Reverts if the verdict is not the arbiter's, is too old, or is for another deal.
    function isReleased(VerdictLib.Verdict calldata verdict, bytes calldata signature) public view returns (bool) {
        VerdictLib.check(verdict, signature, ARBITER, 7 days);
        require(verdict.conditionsSha256 == CONDITIONS && verdict.dealRefHash == DEAL_REF, "another deal");
        return verdict.outcome == VerdictLib.Outcome.Release;
    }
}
`,
};
