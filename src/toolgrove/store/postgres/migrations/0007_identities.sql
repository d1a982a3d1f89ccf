-- Each change names itself and the change that it rests on. Those of before are named by the epoch of the store, as
-- their version tokens were. A process of before leaves these columns out, so it can write no more.
ALTER TABLE journal ADD COLUMN id text COLLATE "C", ADD COLUMN parent text COLLATE "C";
UPDATE journal SET id = epoch || '-' || revision, parent = epoch || '-' || base
    FROM (SELECT body::json ->> 'epoch' AS epoch FROM head) AS store;
ALTER TABLE journal ALTER COLUMN id SET NOT NULL, ALTER COLUMN parent SET NOT NULL;
