import { expect, test } from "vitest";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { createWitnessStore } from "../../../api/adapters/postgres/witness-store.ts";
import { forFile } from "../../support/for-file.ts";
import { witnessSigner } from "../../support/log/note-keys.ts";
import { freshDatabase } from "../../support/service/database.ts";

test("a witness's answer that comes late lowers nothing that is known of it", async () => {
  const store = createWitnessStore(await forFile(connect((await freshDatabase()).apiUrl)));
  const { key } = witnessSigner("witness.example/w", 1);
  const place = { generation: 1, vkey: key.vkey };
  (await store.takeTurn(place, 9))?.end();
  const at = (seconds: number) => [{ keyName: key.name, keyId: key.id, line: "a line\n", seconds }];
  await store.accept(place, 9, at(20));
  await store.accept(place, 3, at(10));
  expect(await store.list(1)).toMatchObject([{ cosigned: { size: 9, at: new Date(20_000) } }]);
});
