-- The journal: the tree, its history and what stands beside it, idempotency records and audit records.
-- Every body carries its whole content as JSON text with a checksum; the columns beside it are there to find it.
CREATE TABLE head (one integer PRIMARY KEY CHECK (one = 1), body text NOT NULL, crc bigint NOT NULL);
CREATE TABLE node (id text COLLATE "C" PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
CREATE TABLE journal (revision bigint PRIMARY KEY, base bigint NOT NULL, body text NOT NULL, crc bigint NOT NULL);
CREATE TABLE fold (moment bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
CREATE TABLE view (
    agent text COLLATE "C", session text COLLATE "C", body text NOT NULL, crc bigint NOT NULL,
    PRIMARY KEY (agent, session)
);
CREATE TABLE expanded (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, agent text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL, node text COLLATE "C" NOT NULL, body text NOT NULL, crc bigint NOT NULL,
    UNIQUE (agent, session, node)
);
CREATE TABLE bookmark (
    agent text COLLATE "C", label text COLLATE "C", body text NOT NULL, crc bigint NOT NULL,
    PRIMARY KEY (agent, label)
);
CREATE TABLE snapshot (number bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
CREATE TABLE idempotency (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, agent text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL, at double precision NOT NULL, body text NOT NULL, crc bigint NOT NULL,
    UNIQUE (agent, key)
);
-- The kind stands in the line before the first object in it; a call has none.
CREATE TABLE audit (
    number bigint PRIMARY KEY, timestamp text COLLATE "C" NOT NULL, agent text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL, outcome text COLLATE "C" NOT NULL, line text NOT NULL,
    kind text COLLATE "C" GENERATED ALWAYS AS (
        substring(line from '^{(?:[^{}"]|"(?:[^"\\]|\\.)*")*,"kind":"([a-z_]+)"')
    ) STORED
);
CREATE INDEX audit_agent ON audit (agent);
CREATE INDEX audit_operation ON audit (operation);
CREATE INDEX audit_timestamp ON audit (timestamp);
CREATE INDEX audit_outcome ON audit (outcome) WHERE outcome <> 'success';
CREATE INDEX audit_kind ON audit (kind) WHERE kind IS NOT NULL;
CREATE TABLE audit_body (number bigint PRIMARY KEY, arguments text, result text, size bigint NOT NULL);
-- Who began a call is known by its connection, so that another can close it when that one is gone.
CREATE TABLE unfinished (
    call text COLLATE "C" PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL,
    replica text DEFAULT current_setting('toolgrove.replica', true)
);
CREATE TABLE replica (id text PRIMARY KEY, seen timestamptz NOT NULL DEFAULT clock_timestamp());
