import { createHash } from "node:crypto";
import { Problem } from "../platform/http/errors.ts";
import type { NotYet } from "../platform/http/route.ts";
import { orderedDocument } from "./exam-document.ts";
import type { ExamStore } from "./exam-store.ts";
import { type GrantStore, tokenSha256 } from "./orders-store.ts";
import { SELLER_CEILING } from "./products.ts";
import { isExamId } from "./record.ts";
import { type ExamIntake, refusedProblem } from "./take-order.ts";

export interface FreeExamParts {
  readonly store: Pick<ExamStore, "get">;
  readonly grants: Pick<GrantStore, "find" | "take">;
  readonly intake: Pick<ExamIntake, "look" | "open">;
  /** No trailing slash. */
  readonly baseUrl: string;
  readonly now: () => Date;
}

/** Returns one ID per corrected exam, and another for each time a failure on our side ended the free one. */
const freeExamId = (id: string, broken: number): string =>
  createHash("sha256")
    .update(["free exam", id, ...(broken === 0 ? [] : [broken])].join("|"))
    .digest("hex")
    .slice(0, 32);

/**
 * Creates a function that takes a granted exam on behalf of a client and returns the response to the order, the same
 * each time. Only the holder of the token may take the exam, because a competitor would take it while the seller is
 * down. It requests a new quote, because the old one may be as old as the correction.
 */
export function createFreeExams({ store, grants, intake, baseUrl, now }: FreeExamParts) {
  return async (id: string, token: string, client: string) => {
    const [corrected, grant] = isExamId(id) ? await Promise.all([store.get(id), grants.find(id)]) : [null, null];
    if (corrected === null || grant === null || grant.tokenSha256 !== tokenSha256(token))
      throw new Problem("not_found", { detail: "No free exam matches this id and this token." });
    const freeId = freeExamId(id, grant.broken);
    const answer = async () => {
      const taken = await store.get(freeId);
      return taken === null ? null : orderedDocument(taken.order, baseUrl);
    };
    const known = await answer();
    if (known !== null) return known;
    const { url, method, body, contentType, other, origin, payment, settlement } = corrected.order;
    const request = { url, method, body, contentType, other, maxPrice: `${SELLER_CEILING}`, settled: null };
    const { payer, nonce } = payment;
    const { prospect } = await intake.look(request, { client, wallet: payer });
    if ("code" in prospect) throw refusedProblem(prospect);
    const notYet = await intake.open(request, prospect, { payer, nonce });
    if (notYet !== null) return (await answer()) ?? refuse(notYet);
    const order = {
      ...{ id: freeId, origin, url, method, body, contentType, other, ...prospect, payment, settlement },
      orderedAt: now(),
      againOf: id,
    };
    if (await grants.take(order)) return orderedDocument(order, baseUrl);
    return (await answer()) ?? orderedDocument(order, baseUrl);
  };
}

function refuse({ detail, retryAfterSeconds }: NotYet): never {
  throw new Problem("not_available", { detail, headers: { "retry-after": `${retryAfterSeconds}` } });
}
