-- Each change names itself and the change that it rests on. Those of before are named by the epoch of the store, as
-- their version tokens were. A process of before leaves these columns out, so it can write no more.
ALTER TABLE journal ADD COLUMN id text COLLATE "C", ADD COLUMN parent text COLLATE "C";
UPDATE journal SET id = epoch || '-' || revision, parent = epoch || '-' || base
    FROM (SELECT body::json ->> 'epoch' AS epoch FROM head) AS store;
ALTER TABLE journal ALTER COLUMN id SET NOT NULL, ALTER COLUMN parent SET NOT NULL;
-- The oldest version of this schema whose processes may still write; whoever holds the head looks at it first. A step
-- that older processes cannot live with raises it, and the default with it:
--     UPDATE head SET oldest = 8;
--     ALTER TABLE head ALTER COLUMN oldest SET DEFAULT 8;
ALTER TABLE head ADD COLUMN oldest integer NOT NULL DEFAULT 7;
-- A process from before there was such a number counts its changes of the state in a table of that name. Without it
-- none of them is kept.
ALTER TABLE state_changes RENAME TO state_change;
