import { encodeEventTopics, encodeFunctionData, keccak256, type Log, parseEventLogs, stringToHex } from "viem";
import { reputationRegistryAbi, validationRegistryAbi } from "../../../contracts/erc8004.ts";
import type { Stated } from "./ports.ts";
import type { Publication } from "./publication.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { LogFilter, MinedLog } from "../../platform/chain/logs.ts";

/** What all our statements are found by. */
const TAG = "x402-certificate";
/** What answers say once their certificate is reversed. */
const REVERSED_TAG = "x402-certificate-reversed";
const NO_ENDPOINT = "";

export type Step = "publish" | "withdraw";

/** A call to a registry, and the event by which the chain shows that it was made. */
export interface Statement {
  readonly data: Hex;
  /** The logs among which the event is. */
  readonly filter: (publisher: Address) => LogFilter;
  /** The event among logs, and what the registry counts a feedback as; null if it is not there. */
  readonly read: (logs: readonly Log[]) => Shown | null;
}

export interface Shown {
  readonly log: MinedLog;
  readonly publisher: Address;
  readonly index: bigint | null;
}

/** What is told to a registry about a certificate, or taken back. */
export function statementOf(publication: Publication, stated: Stated, step: Step): Statement {
  const { registry, request } = publication;
  if (registry === "validation" && request !== null)
    return answer({ ...publication, request }, stated, step === "publish" ? TAG : REVERSED_TAG);
  return step === "publish" ? feedback(publication, stated) : revocation(publication);
}

const hashOf = ({ document }: Stated): Hex => keccak256(stringToHex(document));
const same = (one: Address, other: Address): boolean => one.toLowerCase() === other.toLowerCase();
const lower = (address: Address): Address => address.toLowerCase() as Address;

/** 1 for a PASS and 0 for a FAIL, of that kind of test. */
function feedback({ agent, contract }: Publication, stated: Stated): Statement {
  const hash = hashOf(stated);
  const value = stated.isPass ? 1n : 0n;
  const args = [agent, value, 0, TAG, stated.product, NO_ENDPOINT, stated.url, hash] as const;
  return {
    data: encodeFunctionData({ abi: reputationRegistryAbi, functionName: "giveFeedback", args }),
    filter: (publisher) => ({
      address: contract,
      topics: encodeEventTopics({
        abi: reputationRegistryAbi,
        eventName: "NewFeedback",
        args: { agentId: agent, clientAddress: publisher },
      }),
    }),
    read(logs) {
      const found = parseEventLogs({ abi: reputationRegistryAbi, eventName: "NewFeedback", logs: [...logs] });
      const log = found.find(
        ({ address, args }) => same(address, contract) && args.agentId === agent && args.feedbackHash === hash,
      );
      return log === undefined
        ? null
        : { log, publisher: lower(log.args.clientAddress), index: log.args.feedbackIndex };
    },
  };
}

function revocation({ agent, contract, feedbackIndex }: Publication): Statement {
  if (feedbackIndex === null) throw new Error("a feedback without an index cannot be revoked");
  const args = [agent, feedbackIndex] as const;
  return {
    data: encodeFunctionData({ abi: reputationRegistryAbi, functionName: "revokeFeedback", args }),
    filter: (publisher) => ({
      address: contract,
      topics: encodeEventTopics({
        abi: reputationRegistryAbi,
        eventName: "FeedbackRevoked",
        args: { agentId: agent, clientAddress: publisher, feedbackIndex },
      }),
    }),
    read(logs) {
      const found = parseEventLogs({ abi: reputationRegistryAbi, eventName: "FeedbackRevoked", logs: [...logs] });
      const log = found.find(
        ({ address, args }) =>
          same(address, contract) && args.agentId === agent && args.feedbackIndex === feedbackIndex,
      );
      return log === undefined ? null : { log, publisher: lower(log.args.clientAddress), index: feedbackIndex };
    },
  };
}

/** 100 for a PASS; 0 for a FAIL, and for what was taken back. */
function answer(
  { agent, contract, request }: Publication & { readonly request: Hex },
  stated: Stated,
  tag: string,
): Statement {
  const hash = hashOf(stated);
  const response = stated.isPass && tag === TAG ? 100 : 0;
  const args = [request, response, stated.url, hash, tag] as const;
  return {
    data: encodeFunctionData({ abi: validationRegistryAbi, functionName: "validationResponse", args }),
    filter: (publisher) => ({
      address: contract,
      topics: encodeEventTopics({
        abi: validationRegistryAbi,
        eventName: "ValidationResponse",
        args: { validatorAddress: publisher, agentId: agent, requestHash: request },
      }),
    }),
    read(logs) {
      const found = parseEventLogs({ abi: validationRegistryAbi, eventName: "ValidationResponse", logs: [...logs] });
      const log = found.find(
        ({ address, args }) =>
          same(address, contract) && args.requestHash === request && args.responseHash === hash && args.tag === tag,
      );
      return log === undefined ? null : { log, publisher: lower(log.args.validatorAddress), index: null };
    },
  };
}
