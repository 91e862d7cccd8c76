import { rememberHashes } from "./blooms.ts";
import { endAtFailedFetch } from "./failed-fetch.ts";
import { steadyHeads } from "./heads.ts";
import { keepLockAlone } from "./index-lock.ts";
import { onParentGone } from "./leash.ts";
import { trustNearModules } from "./near-modules.ts";
import { endAfterStandstill } from "./standstill.ts";
import { spareUnusedModules } from "./unused-modules.ts";

const GRACE_MS = 6_000;
/** The exit code for a temporary reason. */
const TRY_AGAIN = 75;
const tryAgain = () => process.exit(TRY_AGAIN);

// Loaded into Ponder before its own code: a SIGKILL of the launcher must not leave Ponder holding the index's lock.
onParentGone(() => {
  process.kill(process.pid, "SIGTERM");
  setTimeout(() => process.exit(1), GRACE_MS).unref();
});

const [nodeUrl = ""] = (process.env.BASE_RPC_URL ?? "").split(",");
globalThis.fetch = steadyHeads(globalThis.fetch, nodeUrl);
// Before what replaces modules, which asks it.
trustNearModules();
spareUnusedModules();
rememberHashes();
endAtFailedFetch();
endAfterStandstill(tryAgain);
keepLockAlone({ schema: process.env.INDEX_SCHEMA ?? "", own: process.env.OWN_ROWS }, tryAgain);
