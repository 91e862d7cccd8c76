import type { Address } from "../../../platform/wallet.ts";
import type { Authorization } from "../../scheme.ts";

/** With addresses in lower case, as everything inside has them. */
export const lower = (authorization: Authorization): Authorization => ({
  ...authorization,
  from: authorization.from.toLowerCase() as Address,
  to: authorization.to.toLowerCase() as Address,
});
