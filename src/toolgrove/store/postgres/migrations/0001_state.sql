-- What people decided: pins, approvals, tokens, logins, and deeds on their way into the audit log.
-- Bodies are JSON as text, since jsonb refuses characters that clients may send.
CREATE TABLE pins (
    server text NOT NULL,
    own_name text NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (server, own_name)
);
CREATE TABLE met (server text PRIMARY KEY);
CREATE TABLE approvals (
    id text PRIMARY KEY,
    agent text NOT NULL,
    call_key text NOT NULL,
    state text NOT NULL,
    call_id text NOT NULL,
    requested_at double precision NOT NULL,
    expires_at double precision NOT NULL,
    body text NOT NULL
);
CREATE INDEX approvals_of_a_call ON approvals (call_key);
CREATE INDEX approvals_of_an_agent ON approvals (agent, state);
CREATE TABLE tokens (
    hash text PRIMARY KEY,
    holder text NOT NULL,
    used_at double precision,
    expires_at double precision
);
CREATE TABLE logins (server text PRIMARY KEY, body text NOT NULL);
CREATE TABLE deeds (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text NOT NULL);
-- Counts the changes of each kind, so that a copy knows whether it is the newest.
CREATE TABLE state_changes (kind text PRIMARY KEY, number bigint NOT NULL);
INSERT INTO state_changes (kind, number) VALUES ('pins', 0), ('approvals', 0), ('tokens', 0), ('logins', 0), ('deeds', 0);
