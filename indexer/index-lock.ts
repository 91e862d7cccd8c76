import pg from "pg";
import { ownInOneLine, readOwnAddresses } from "./own-address-table.ts";

// What Ponder asks of the table that its lock is in. `indexer.test.ts` fails when it asks otherwise.
const LOOKS = /^select "value" from "\w+"\."_ponder_meta" where [^;]*$/;
const TAKES = /^(insert into|update) "\w+"\."_ponder_meta" .*(values \(\$1, \$2\)|set "value" = \$1)$/;
const GIVES_BACK = /^update "\w+"\."_ponder_meta" set "value" = jsonb_set\(value, '\{is_locked\}', to_jsonb\(0\)\)$/;

/** What this Ponder was told of the index that it is to fill. */
export interface Told {
  readonly schema: string;
  /** The rows of its `own_address`, as `ownInOneLine` says them; undefined for an index that has no such table. */
  readonly own: string | undefined;
}

/**
 * From now on this Ponder has an index's lock alone, and gives back only a lock that it has. By itself, two that start at
 * the same moment both find it free; and one that waits for it in vain takes it from its owner when it ends, so that the
 * next one that starts writes the rows beside the owner. If the index leaves out other addresses by then than this Ponder
 * was told, it calls `end` instead of taking the lock.
 */
export function keepLockAlone({ schema, own }: Told, end: () => void): void {
  const { query } = pg.Client.prototype;
  let isOurs = false;
  pg.Client.prototype.query = function (this: pg.Client, question: unknown, ...rest: unknown[]) {
    const ask = (asked: unknown): unknown => Reflect.apply(query, this, [asked, ...rest]);
    if (!isQuestion(question)) return ask(question);
    const { text } = question;
    if (LOOKS.test(text)) return ask({ ...question, text: `${text} for update` });
    if (GIVES_BACK.test(text) && !isOurs) return ask({ ...question, text: "select" });
    if (!TAKES.test(text)) return ask(question);
    return Promise.resolve(ask(question)).then(async (done) => {
      if (own !== undefined && (await ownOf(this, schema)) !== own) end();
      isOurs = true;
      return done;
    });
  } as typeof query;
}

/** Nobody changes them before the transaction of `client` has ended, and the lock is taken. */
async function ownOf(client: pg.Client, schema: string): Promise<string> {
  const table = `${pg.escapeIdentifier(schema)}.own_address`;
  await client.query(`lock table ${table} in share mode`);
  return ownInOneLine(await readOwnAddresses(client, schema));
}

const isQuestion = (question: unknown): question is { readonly text: string } =>
  typeof question === "object" && question !== null && "text" in question && typeof question.text === "string";
