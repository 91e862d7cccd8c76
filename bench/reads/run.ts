// The cost of reads. Over HTTP, compares `/verify` and `/badge` with a bare Hono route that reads one row by its primary key, on
// the same machine and database, in turns. Without HTTP and payment, compares `/verify` and the score on an index with the same
// reads on an index with a tenth of its transfers.
//
//   npm run bench:reads -- [http] [score] [transfers of the larger index, default 1000000]
import { withService } from "../programs.ts";
import { type Figure, report } from "../table.ts";
import { measureHttp } from "./http.ts";
import { measureScore } from "./score.ts";

const words = process.argv.slice(2);
const [transfers = 1_000_000] = words.map(Number).filter((number) => !Number.isNaN(number));
const parts: Readonly<Record<string, () => Promise<readonly Figure[]>>> = {
  http: () => withService(measureHttp),
  score: () => measureScore(transfers / 10, transfers),
};
const named = words.filter((word) => word in parts);
let isReached = true;
for (const name of named.length === 0 ? Object.keys(parts) : named)
  isReached = report(`reads, ${name}`, (await parts[name]?.()) ?? []) && isReached;
process.exitCode = isReached ? 0 : 1;
