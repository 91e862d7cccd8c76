import type { Config } from "../platform/config/config.ts";
import { type Platform, type Slice, under } from "../platform/slice.ts";
import { cafeRoutes } from "./routes.ts";
import { createCafeStore } from "./store.ts";

export const createCafe = ({ pool, now }: Platform, { baseUrl }: Config): Slice => ({
  routes: under("Café", cafeRoutes({ store: createCafeStore(pool), baseUrl, now })),
  jobs: [],
});
