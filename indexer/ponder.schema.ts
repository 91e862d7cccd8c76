// Ponder refuses an index once this text changes.
export * from "./tables.ts";
