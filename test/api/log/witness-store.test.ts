import { expect, test } from "vitest";
import { createWitnessStore, LONGEST_WAIT_SECONDS } from "../../../api/log/witness/store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { forFile } from "../../support/for-file.ts";
import { witnessSigner } from "../../support/log/memory-log.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

const database = await freshDatabase();
const store = createWitnessStore(await forFile(connect(database.apiUrl)));

test("a witness's answer that comes late lowers nothing that is known of it", async () => {
  const { key } = witnessSigner("witness.example/w", 1);
  const place = { generation: 1, vkey: key.vkey };
  (await store.takeTurn(place, 9))?.end();
  const at = (seconds: number) => [{ keyName: key.name, keyId: key.id, line: "a line\n", seconds }];
  await store.accept(place, 9, at(20));
  await store.accept(place, 3, at(10));
  expect(await store.list(1)).toMatchObject([{ cosigned: { size: 9, at: new Date(20_000) } }]);
});

test("a witness is asked again at once when the clock was set back, and not before its time otherwise", async () => {
  const owner = await forFile(await connectOwner(database));
  const place = { generation: 1, vkey: witnessSigner("witness.example/late", 2).key.vkey };
  const takes = async () => {
    const turn = await store.takeTurn(place, 5);
    turn?.end();
    return turn !== null;
  };
  expect(await takes()).toBe(true);
  await store.fail(place, { error: "down", waitSeconds: LONGEST_WAIT_SECONDS });
  expect(await takes()).toBe(false);
  await owner.query("UPDATE log_witness SET due_at = due_at + interval '1 hour' WHERE vkey = $1", [place.vkey]);
  expect(await takes()).toBe(true);
  const { name: keyName, id: keyId } = witnessSigner("witness.example/late", 2).key;
  await store.accept(place, 5, [{ keyName, keyId, line: "a line\n", seconds: 10 }]);
  expect(await takes()).toBe(false);
  await owner.query("UPDATE log_witness SET asked_at = asked_at + interval '1 hour' WHERE vkey = $1", [place.vkey]);
  expect(await takes()).toBe(true);
});
