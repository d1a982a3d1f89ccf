-- What each change did, for the other processes that have the same tree in memory; only the latest are kept.
CREATE TABLE entry (revision bigint PRIMARY KEY, body text NOT NULL, crc bigint NOT NULL);
