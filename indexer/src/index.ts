// Ponder refuses an index once this text changes.
import "../handlers/index.ts";
