import { expect, test } from "vitest";
import { demandBase, readSettings, SettingError } from "../../../scripts/embedded/settings.ts";

test.each([
  [{ PORT: "0" }, 'PORT is wrong: expected a port from 1 to 65535, got "0".'],
  [{ BASE_RPC_PORT: "8545x" }, 'BASE_RPC_PORT is wrong: expected a port from 1 to 65535, got "8545x".'],
  [{ PORT: "8546" }, "PORT and BASE_SEPOLIA_RPC_PORT are both 8546. Give them different ports."],
])("npm start refuses the ports %j in one line", async (env, message) => {
  await expect(readSettings(env)).rejects.toThrow(new SettingError(message));
});

test("npm start accepts no main network other than Base", () => {
  for (const MAIN_NETWORK of [undefined, "", "base"]) expect(() => demandBase({ MAIN_NETWORK })).not.toThrow();
  expect(() => demandBase({ MAIN_NETWORK: "base-sepolia" })).toThrow(
    new SettingError("npm start always sells on the local Base. Unset MAIN_NETWORK."),
  );
});
