-- Who answers a contest (api/adapters/postgres/presence.ts); NULL while nobody does.
ALTER TABLE escrow_contest ADD COLUMN owner int;
