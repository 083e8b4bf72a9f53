-- The tables of an older system, as its records describe them: names in the
-- database's own order, no directory, no redrive. They are in the schema that its
-- connections find first.

CREATE TABLE events (
	execution_id TEXT        NOT NULL,
	sequence     BIGINT      NOT NULL,
	event_type   TEXT        NOT NULL,
	payload      JSONB,
	metadata     JSONB       NOT NULL DEFAULT '{}',
	recorded_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
	PRIMARY KEY (execution_id, sequence)
);
CREATE INDEX idx_events_exec ON events (execution_id, sequence);

-- A row once somebody has acquired, or parked.
CREATE TABLE fences (
	execution_id TEXT   PRIMARY KEY,
	token        BIGINT NOT NULL
);

CREATE TABLE refs (
	name         TEXT        PRIMARY KEY,
	execution_id TEXT        NOT NULL,
	sequence     BIGINT      NOT NULL,
	updated_at   TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- The earlier places of each ref, numbered from 1.
CREATE TABLE lineage (
	name         TEXT   NOT NULL,
	position     BIGINT NOT NULL,
	execution_id TEXT   NOT NULL,
	sequence     BIGINT NOT NULL,
	PRIMARY KEY (name, position)
);

-- Times are milliseconds since 1970.
CREATE TABLE timers (
	execution_id TEXT   NOT NULL,
	wake_at      BIGINT NOT NULL,
	PRIMARY KEY (execution_id, wake_at)
);
CREATE INDEX idx_timers_wake ON timers (wake_at);
