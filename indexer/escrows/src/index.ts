import "../handlers/index.ts";
