-- How often each holder called in the window that runs, and in the one before it; seconds since 1970 by this server.
CREATE TABLE rate_window (
    holder text NOT NULL,
    seconds double precision NOT NULL,
    began double precision NOT NULL,
    count bigint NOT NULL,
    before bigint NOT NULL,
    PRIMARY KEY (holder, seconds)
);
