// The deliverable of bench:arbiter: 64 KiB, answered at once.
import { createServer } from "node:http";

const BODY = Buffer.alloc(65_536, "delivered ");
createServer((_, response) => response.setHeader("content-length", BODY.length).end(BODY)).listen(
  Number(process.env.PORT),
  "127.0.0.1",
  () => console.log("ready"),
);
