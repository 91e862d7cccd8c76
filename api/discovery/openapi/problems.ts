import { z } from "zod";
import { PROBLEMS, type ProblemCode, type problemBody } from "../../platform/http/errors.ts";

const CODES = Object.keys(PROBLEMS) as ProblemCode[];
const TITLES = Object.values(PROBLEMS).map(({ title }) => title);
const STATUSES = [...new Set(Object.values(PROBLEMS).map(({ status }) => status))];

/** The body of every problem (RFC 9457). */
export const PROBLEM = z
  .object({
    type: z.string(),
    title: z.enum(TITLES),
    status: z.literal(STATUSES),
    detail: z.string(),
    code: z.enum(CODES),
    request_id: z.string(),
    errors: z
      .array(
        z.object({
          path: z.string().meta({ description: "The invalid field of the body, as a dot-separated path." }),
          message: z.string(),
          rule: z.int().exactOptional().meta({ description: "The arbiter policy rule that refuses it." }),
        }),
      )
      .exactOptional(),
  })
  .meta({ id: "Problem" }) satisfies z.ZodType<ReturnType<typeof problemBody>>;

/** Possible answers to any request. */
const OF_ALL: readonly ProblemCode[] = [
  "body_too_large",
  "too_many_requests",
  "headers_too_large",
  "request_timeout",
  "internal_error",
  "not_available",
];

/** Possible answers to any request that can pay. */
const OF_PAYABLE: readonly ProblemCode[] = [
  "malformed_request",
  "malformed_payment",
  "payment_conflict",
  "unacceptable",
  "payer_refused",
  "payment_pending",
];

/** The statuses of the problems a route may answer with. */
export function problemStatuses(own: readonly ProblemCode[], isPayable: boolean): readonly number[] {
  const codes = [...OF_ALL, ...(isPayable ? OF_PAYABLE : []), ...own];
  return [...new Set(codes.map((code) => PROBLEMS[code].status))].sort((one, other) => one - other);
}

export const problemName = (status: number): string => `Problem${status}`;

/** `components.responses` for these statuses. A browser that finds nothing gets a page. */
export const problemResponses = (schema: object, statuses: Iterable<number>): Readonly<Record<string, object>> =>
  Object.fromEntries(
    [...new Set(statuses)].map((status) => {
      const codes = CODES.filter((code) => PROBLEMS[code].status === status);
      return [
        problemName(status),
        {
          description: codes.map((code) => `${PROBLEMS[code].title} (\`${code}\`)`).join(" · "),
          content: { "application/problem+json": { schema }, ...(status === 404 && { "text/html": {} }) },
        },
      ];
    }),
  );
