BEGIN TRANSACTION;
CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    agent TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    arguments_hash TEXT NOT NULL,
    definition TEXT NOT NULL,
    definition_hash TEXT NOT NULL,
    rule TEXT NOT NULL,
    receipt TEXT NOT NULL,
    sends TEXT,
    state TEXT NOT NULL,
    requested_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    decided_at REAL,
    decided_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    closed_at REAL
);
CREATE TABLE pins (
    server TEXT NOT NULL,
    own_name TEXT NOT NULL,
    hash TEXT NOT NULL,
    definition TEXT NOT NULL,
    pinned_at REAL NOT NULL,
    pinned_by TEXT NOT NULL,
    seen_hash TEXT NOT NULL,
    seen_definition TEXT,
    seen_at REAL,
    PRIMARY KEY (server, own_name)
) WITHOUT ROWID;
INSERT INTO "pins" VALUES('up','echo','hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh','{"name": "echo"}',1800001060.0,'cli:someone','',NULL,NULL);
CREATE TABLE tokens (holder TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE) WITHOUT ROWID;
INSERT INTO "tokens" VALUES('ann','45c9424dbb8954050abdff2e809764b7f79516fbf1243b976224e0fbe83ac069');
CREATE INDEX approvals_of_a_call ON approvals (agent, tool, arguments_hash, definition_hash);
COMMIT;
PRAGMA user_version=2;
