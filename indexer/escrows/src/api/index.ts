import { Hono } from "hono";

/** Ponder does not start without this file. It serves nothing of ours: readers use PostgreSQL. */
export default new Hono();
