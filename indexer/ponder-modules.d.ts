/// <reference types="ponder/virtual" />

// Ponder writes the same text to the ignored `ponder-env.d.ts` at each start. This copy lets a clean clone type-check.

declare module "ponder:internal" {
  const config: typeof import("./ponder.config.ts");
  const schema: typeof import("./ponder.schema.ts");
}

declare module "ponder:schema" {
  export * from "./ponder.schema.ts";
}
