-- Answers on their way to the replica whose call asked for them, and what became of that call.
CREATE TABLE handoff (
    id text PRIMARY KEY,
    holder text NOT NULL,
    agent text NOT NULL,
    answer text NOT NULL,
    taken boolean NOT NULL DEFAULT false,
    outcome text,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO state_changes (kind, number) VALUES ('handoffs', 0);
