-- The schema of a shard. All ids are COLLATE "C": UTF-8 byte order, which is
-- Unicode code point order, whatever the database's own collation is.

-- One row: which schema this is.
CREATE TABLE IF NOT EXISTS loomgate.schema_version (
	one     boolean PRIMARY KEY DEFAULT true CHECK (one),
	version integer NOT NULL,
	events  text    NOT NULL -- the version of the events group that wrote it
);

-- The directory: one row for each execution that has, or had, events, a fence or a
-- data key. It is what a page reads and what a write locks. A plain append never
-- changes it, so pages stay index-only.
CREATE TABLE IF NOT EXISTS loomgate.executions (
	execution_id text COLLATE "C" PRIMARY KEY,
	slot         integer NOT NULL,
	fence        bigint  NOT NULL DEFAULT 0,
	incarnation  bigint  NOT NULL DEFAULT 1,
	live         boolean NOT NULL, -- has events in its incarnation
	floor        bigint  NOT NULL DEFAULT 1,
	key_id       uuid,
	shredded     boolean NOT NULL DEFAULT false,
	deleted_at   timestamptz
) WITH (fillfactor = 90);
CREATE INDEX IF NOT EXISTS executions_live ON loomgate.executions (execution_id) INCLUDE (slot) WHERE live;
CREATE INDEX IF NOT EXISTS executions_deleted ON loomgate.executions (execution_id) WHERE incarnation > 1 AND NOT live;

CREATE TABLE IF NOT EXISTS loomgate.events (
	execution_id text COLLATE "C" NOT NULL,
	sequence     bigint      NOT NULL,
	event_id     uuid        NOT NULL,
	kind         text        NOT NULL,
	kernel       boolean     NOT NULL,
	answering    boolean     NOT NULL, -- by the table of the node that wrote it
	fence        bigint      NOT NULL,
	recorded_at  timestamptz NOT NULL,
	size         integer     NOT NULL, -- against byte limits
	metadata     jsonb,
	payload      bytea,
	PRIMARY KEY (execution_id, sequence)
);

CREATE TABLE IF NOT EXISTS loomgate.timers (
	execution_id text COLLATE "C" NOT NULL,
	wake_at      timestamptz NOT NULL,
	slot         integer     NOT NULL,
	redrive      integer, -- the attempt; NULL on a plain wake
	version      bigint      NOT NULL,
	PRIMARY KEY (execution_id, wake_at)
);
CREATE INDEX IF NOT EXISTS timers_due ON loomgate.timers (wake_at, execution_id);

CREATE TABLE IF NOT EXISTS loomgate.refs (
	name         text COLLATE "C" PRIMARY KEY,
	slot         integer NOT NULL,
	execution_id text COLLATE "C" NOT NULL,
	sequence     bigint  NOT NULL,
	version      bigint  NOT NULL
);

-- The earlier places of each ref.
CREATE TABLE IF NOT EXISTS loomgate.lineage (
	name         text COLLATE "C" NOT NULL,
	version      bigint NOT NULL,
	execution_id text COLLATE "C" NOT NULL,
	sequence     bigint NOT NULL,
	PRIMARY KEY (name, version)
);

CREATE TABLE IF NOT EXISTS loomgate.leases (
	name       text COLLATE "C" PRIMARY KEY,
	slot       integer     NOT NULL,
	holder     text        NOT NULL,
	token      bigint      NOT NULL,
	expires_at timestamptz NOT NULL
);

CREATE TABLE IF NOT EXISTS loomgate.data_keys (
	owner      text COLLATE "C" NOT NULL,
	version    bigint  NOT NULL,
	slot       integer NOT NULL,
	key_id     uuid    NOT NULL,
	wrapped_by text    NOT NULL,
	wrapped    bytea, -- NULL: destroyed
	PRIMARY KEY (owner, version)
);

-- Versions of timers and refs, and tokens of leases: none is ever used twice.
CREATE SEQUENCE IF NOT EXISTS loomgate.versions;

-- What this shard says of itself. No row: it has no identity, and nothing is routed.
CREATE TABLE IF NOT EXISTS loomgate.identity (
	one              boolean PRIMARY KEY DEFAULT true CHECK (one),
	cluster          text    NOT NULL,
	shard            text    NOT NULL,
	fingerprint      text    NOT NULL,
	min_writer_major integer NOT NULL,
	min_writer_minor integer NOT NULL,
	version          bigint  NOT NULL
);

CREATE TABLE IF NOT EXISTS loomgate.slots (
	slot   integer  PRIMARY KEY,
	state  smallint NOT NULL, -- 1 owned, 2 frozen, 3 released, 4 receiving
	epoch  bigint   NOT NULL,
	peer   text     NOT NULL,
	tenant text     NOT NULL
);
CREATE INDEX IF NOT EXISTS slots_unlisted ON loomgate.slots (slot) WHERE state > 2; -- what pages leave out

-- Every write locks this table in ROW SHARE mode before it looks at slots, and a
-- change of slots in EXCLUSIVE mode: a change waits for the writes under way, and
-- a write that comes later sees it.
CREATE TABLE IF NOT EXISTS loomgate.slot_barrier ();
