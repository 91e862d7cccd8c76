import { Hono } from "hono";

/** Ponder does not start without this file. It has no routes, because readers use PostgreSQL. */
export default new Hono();
