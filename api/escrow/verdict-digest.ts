import type { Task } from "./escrow-ports.ts";
import { bytes32Word, uintWord } from "../platform/chain/abi-words.ts";
import { remember } from "../platform/memo.ts";
import { NETWORKS } from "../platform/networks.ts";
import { domainHash, typedDigest, typeHash } from "../platform/chain/typed-data.ts";
import type { Hex } from "../platform/wallet.ts";

const VERDICT = typeHash("Verdict", [
  { name: "paymentId", type: "bytes32" },
  { name: "release", type: "bool" },
  { name: "record", type: "bytes32" },
]);
const domainHashes = remember<string>(16);

/** What the arbiter signs, so that anybody can carry its verdict: EIP-712, as `contracts/Escrow.sol` has it. */
export function verdictDigest(
  { network, contract, payment, decision }: Pick<Task, "network" | "contract" | "payment" | "decision">,
  record: Hex,
): Hex {
  const { chainId } = NETWORKS[network];
  const domain = domainHashes(`${network} ${contract}`, () =>
    domainHash({ name: "Agent Payment Trust Escrow", version: "1", chainId, verifyingContract: contract }),
  );
  const isRelease = uintWord(decision === "release" ? 1 : 0);
  return typedDigest(domain, VERDICT + bytes32Word(payment) + isRelease + bytes32Word(record));
}
