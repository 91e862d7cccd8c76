import type { z } from "zod";
import type { ScoreDocument } from "../../packages/verifier/src/score/record.ts";
import { answered, json, jsonAnswer } from "../platform/http/answer.ts";
import { type Intake, type PaidRoute, paidRoute, type Route, type RouteHooks } from "../platform/http/route.ts";
import type { Atomic } from "../platform/money.ts";
import { MAIN_NETWORK } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";
import type { Scores } from "./read-scores.ts";
import { BATCH_REQUEST, EXAMPLE_WALLETS, exampleRecord, MAX_WALLETS, SCORE_PRICES, SCORE_REQUEST } from "./request.ts";
import { SCORE, SCORES } from "./schemas.ts";

export interface ScoreRouteParts {
  readonly scores: Scores;
  /**
   * Returns the URL of the current exams of this wallet as a payee, whenever the record was sold, or null if there is
   * none. The record contains the newest exams that counted at its time.
   */
  readonly payeeUrl: (wallet: string) => Promise<string | null>;
}

interface Plan<Input> extends Pick<PaidRoute, "path" | "summary" | "description" | "output"> {
  readonly id: string;
  readonly price: Atomic;
  readonly input: z.ZodType<Input>;
  readonly example: PaidRoute["example"];
  readonly wallets: (input: Input) => readonly Address[];
  readonly answer: (records: readonly ScoreDocument[]) => unknown;
  readonly hooks: Pick<RouteHooks<Input>, "links" | "query">;
}

export const scoreRoutes = ({ scores, payeeUrl }: ScoreRouteParts): readonly Route[] => [
  scoreRoute(scores, {
    id: "score",
    path: "/score",
    summary: "A wallet's payment risk score from 0 to 100, with every fact behind it",
    description: "A wallet's risk score from 0 to 100: tier, components, flags, and the facts to recompute it.",
    price: SCORE_PRICES.one,
    input: SCORE_REQUEST,
    output: json(SCORE),
    example: { input: { wallet: EXAMPLE_WALLETS[0] }, output: exampleRecord },
    wallets: ({ wallet }) => [wallet],
    answer: ([record]) => record,
    hooks: {
      query: ["wallet"],
      links: async ({ body }) => {
        const url = await payeeUrl(String(JSON.parse(Buffer.from(body).toString("utf8")).wallet));
        return url === null ? null : `<${url}>; rel="related"; title="Exams of the wallet as a seller"`;
      },
    },
  }),
  scoreRoute(scores, {
    id: "score.batch",
    path: "/score/batch",
    summary: `Risk scores for up to ${MAX_WALLETS} wallets`,
    description: `Risk scores for 1 to ${MAX_WALLETS} wallets, all as of one block, in the order given.`,
    price: SCORE_PRICES.batch,
    input: BATCH_REQUEST,
    output: json(SCORES),
    example: { input: { wallets: EXAMPLE_WALLETS }, output: [exampleRecord] },
    wallets: ({ wallets }) => wallets,
    answer: (records) => records,
    hooks: {},
  }),
];

const scoreRoute = <Input>(scores: Scores, { price, wallets, answer, hooks, ...plan }: Plan<Input>): PaidRoute =>
  paidRoute<Input>({
    ...plan,
    method: "POST",
    terms: { networks: [MAIN_NETWORK], price },
    hooks: { prepare: (input, client) => scores.prepare(wallets(input), client), ...hooks },
    // A score without its chain facts would be a different score, so nothing is sold.
    intake: async (input): Promise<Intake<Input>> =>
      (await scores.ready(wallets(input)))
        ? { input }
        : {
            unavailable:
              "Scores are not sold while the index of on-chain payments is down or behind, or before an unpaid call has had their facts looked up.",
          },
    async sell({ input }) {
      const records = await scores.of(wallets(input));
      if (records === null) throw new Error("the index became unavailable after the payment");
      return answered(jsonAnswer(answer(records)));
    },
  });
