// The peer of bench/reads: a bare Hono route that reads one certificate row by its primary key and returns it as JSON.
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import pg from "pg";

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 16 });
const app = new Hono();
app.get("/row/:id", async (c) => {
  const text = "SELECT * FROM certificate WHERE id = $1";
  const { rows } = await pool.query({ name: "row", text, values: [c.req.param("id")] });
  return c.json(rows[0]);
});
serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: "127.0.0.1" }, () => console.log("ready"));
