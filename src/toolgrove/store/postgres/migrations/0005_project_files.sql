-- Which project files were taken, and when last; each process says which one it runs by.
CREATE TABLE project_file (digest text PRIMARY KEY, taken timestamptz NOT NULL DEFAULT clock_timestamp());
ALTER TABLE replica ADD COLUMN file text;
INSERT INTO state_changes (kind, number) VALUES ('files', 0);
