-- What an older system may have left. Its database sorts a_b before A1; bytes do not.

INSERT INTO events (execution_id, sequence, event_type, payload, metadata, recorded_at) VALUES
	-- kernel counts as a stamp only if it is JSON true
	('A1', 1, 'EXECUTION_STARTED', '{"order": 1}', '{"kernel": true, "actor": "ann"}', '2026-01-02 03:04:05.678901Z'),
	('A1', 2, 'FUTURE_KIND', NULL, '{"kernel": true, "fence": 3}', '2026-01-02 03:04:06Z'),
	('A1', 3, 'note', '"text"', '{"kernel": "true", "n": 4, "none": null, "list": [1, "two"]}', '2026-01-02 03:04:07Z'),
	('A1', 4, 'EXECUTION_RESUMED', 'null', '{"kernel": 1, "fence": "3"}', '2026-01-02 03:04:08Z'),
	-- parked under token 7, with an event behind that answers nothing
	('a_b', 1, 'EXECUTION_STARTED', '{}', '{"kernel": true}', '2026-01-02 03:04:05Z'),
	('a_b', 2, 'EXECUTION_SUSPENDED', '{}', '{"kernel": true, "fence": 7}', '2026-01-02 03:04:05Z'),
	('a_b', 3, 'EXECUTION_DENIED', '{}', '{"kernel": true}', '2026-01-02 03:04:05Z'),
	-- truncated, except for 2: nothing may be missing from 5 on
	('a1', 2, 'kept', '{}', '{}', '2026-01-02 03:04:05Z'),
	('a1', 5, 'note', '{}', '{}', '2026-01-02 03:04:05Z'),
	('a1', 6, 'note', '{}', '{}', '2026-01-02 03:04:05Z'),
	-- it's 'quoted' and not ASCII
	('é''\', 1, 'note', '{}', '{}', '2026-01-02 03:04:05Z');

INSERT INTO fences VALUES ('a_b', 7), ('A1', 3), ('fenced only', 4);

INSERT INTO lineage VALUES ('main', 1, 'A1', 1), ('main', 2, 'A1', 2);
INSERT INTO refs (name, execution_id, sequence) VALUES ('main', 'A1', 3), ('b_a', 'a1', 5), ('B1', 'a_b', 1);

INSERT INTO timers VALUES ('a_b', 1767323045678), ('A1', 4102444800000);
