package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/spi"
)

// An Adoption takes over the tables of an older system, in the database where they
// are: its events, refs, timers and fences become those of one tenant. The older
// system's programs cannot use the database afterwards; stop them before.
type Adoption struct {
	// Tenant is whose the older names are: its scope is put in front of each.
	Tenant spi.TenantName

	// Schema is where the older tables are: "public" if "".
	Schema string

	// Identity makes the database a shard, which owns all hash slots at epoch 1 and
	// keeps them until the backfill is done. SlotOf then tells the slot of a name,
	// with the scope in front of it, as those do who route calls. Without an
	// Identity nothing is routed, and every slot is 0.
	Identity spi.Identity
	SlotOf   func(scoped string) spi.Slot
}

func (a *Adoption) validate() error {
	if a == nil {
		return nil
	}
	if (a.Identity == spi.Identity{}) != (a.SlotOf == nil) {
		return errors.New("an adoption has an Identity and a SlotOf, or neither")
	}
	if a.SlotOf != nil {
		if err := (spi.ChangeOwnershipRequest{Identity: a.Identity}).Validate(); err != nil {
			return err
		}
	}
	_, err := spi.ScopeOf(a.Tenant)
	return err
}

// slots returns the slots of names.
func (a *Adoption) slots(names []string) []int32 {
	slots := make([]int32, len(names))
	for i, name := range names {
		if a != nil && a.SlotOf != nil {
			slots[i] = int32(a.SlotOf(name))
		}
	}
	return slots
}

// olderTables are the tables of an older system.
type olderTables struct {
	schema  string
	columns map[string]map[string]column
	indexes []string // on events, which its primary key makes superfluous
	trigger string   // one that was written for the older columns, and its table
}

// olderColumns are the columns that each older table has to have. Others stay, as
// long as an insert need not give them.
var olderColumns = map[string][]string{
	"refs":    {"name", "execution_id", "sequence"},
	"lineage": {"name", "position", "execution_id", "sequence"},
	"timers":  {"execution_id", "wake_at"},
	"fences":  {"execution_id", "token"},
	"events":  {"execution_id", "sequence", "event_type", "payload", "metadata", "recorded_at"},
}

// laterColumns are those that a newer one of the older systems may have as well.
var laterColumns = []string{"redrive", "event_id"}

// there reports whether the tables are an older system's, and not some other
// program's of the same name.
func (o olderTables) there() bool {
	events := o.columns["events"]
	for _, name := range []string{"execution_id", "sequence", "event_type"} {
		if _, there := events[name]; !there {
			return false
		}
	}
	return true
}

func (s *session) older(ctx context.Context) (o olderTables, err error) {
	o.schema = "public"
	if s.Adopt != nil && s.Adopt.Schema != "" {
		o.schema = s.Adopt.Schema
	}
	if o.columns, err = s.tables(ctx, o.schema); err != nil || !o.there() {
		return o, err
	}
	rows, err := s.conn.Query(ctx, `SELECT c.relname FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
JOIN pg_catalog.pg_class t ON t.oid = i.indrelid AND t.relname = 'events'
JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace AND n.nspname = $1
WHERE i.indpred IS NULL AND i.indexprs IS NULL AND NOT i.indisprimary
	AND NOT EXISTS (SELECT FROM pg_catalog.pg_constraint x WHERE x.conindid = c.oid)
	AND (SELECT pg_catalog.array_agg(a.attname::text ORDER BY k.n) FROM pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, n)
		JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum) IN (ARRAY['execution_id'], ARRAY['execution_id', 'sequence'])
ORDER BY 1`, o.schema)
	if err != nil {
		return o, err
	}
	if o.indexes, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return o, err
	}
	err = s.conn.QueryRow(ctx, `SELECT coalesce(min(g.tgname || ' of ' || t.relname), '') FROM pg_catalog.pg_trigger g
JOIN pg_catalog.pg_class t ON t.oid = g.tgrelid AND t.relname = ANY ($2)
JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace AND n.nspname = $1
WHERE NOT g.tgisinternal`, o.schema, slices.Collect(maps.Keys(olderColumns))).Scan(&o.trigger)
	return o, err
}

// check looks at what the statements of an adoption take for granted.
func (o olderTables) check() error {
	if o.trigger != "" {
		return fmt.Errorf("drop the trigger %s in schema %q: it would run for each new row", o.trigger, o.schema)
	}
	for table, expected := range olderColumns {
		have, there := o.columns[table]
		if !there {
			continue
		}
		for _, name := range expected {
			if _, there := have[name]; !there {
				return fmt.Errorf("the older table %s.%s has no column %s", o.schema, table, name)
			}
		}
		for name, c := range have {
			if c.required && !slices.Contains(expected, name) && !slices.Contains(laterColumns, name) {
				return fmt.Errorf("the older table %s.%s has a column %s that is unknown here and that each insert has to give: give it a default, or drop its NOT NULL", o.schema, table, name)
			}
		}
	}
	return nil
}

// adopt returns the step that makes the older tables the store's own.
//
// The tables are moved and altered, never copied to others; but every row of events
// has to change: its id gets the scope, which all that reads it relies on, it gets
// an event id, and its payload becomes bytes. So the table is written once more, by
// one ALTER TABLE, which also builds the primary key anew, in the order of bytes. A
// rule by which the store puts the scope in front when it reads would spare that,
// and would have to be part of each statement, for each database, for ever.
//
// It is one step for all tables: the older system works on until it is done, or, if
// it cannot be, as if nothing had been.
func (s *session) adopt(o olderTables, create []string) (Step, error) {
	if err := o.check(); err != nil {
		return Step{}, err
	}
	scope, err := spi.ScopeOf(s.Adopt.Tenant)
	if err != nil {
		return Step{}, err
	}
	a := adoption{o, scope.Prefix(), Step{Name: "adopt the older tables"}}
	for _, table := range []string{"lineage", "refs", "timers", "fences", "events"} { // the smaller and less busy first
		if a.has(table) {
			a.step.Locks = append(a.step.Locks, a.name(table)+" ACCESS EXCLUSIVE")
			a.add("LOCK TABLE " + a.name(table) + " IN ACCESS EXCLUSIVE MODE")
		}
	}
	a.add(create...)
	a.add("CREATE SEQUENCE IF NOT EXISTS loomgate.versions")
	a.refs()
	a.timers()
	a.fences()
	a.events()
	a.add(schema)
	a.identity(s.Adopt.Identity)
	a.add("ANALYZE loomgate.refs, loomgate.lineage, loomgate.timers, loomgate.older_fences, loomgate.events", versionSQL())
	a.step.then = func(ctx context.Context, tx pgx.Tx) error {
		if err := validNames(ctx, tx, scope); err != nil || s.Adopt.SlotOf == nil {
			return err
		}
		return s.Adopt.place(ctx, tx)
	}
	return a.step, nil
}

// An adoption collects the statements of its step.
type adoption struct {
	olderTables
	prefix string
	step   Step
}

func (a *adoption) add(statements ...string) {
	a.step.Statements = append(a.step.Statements, statements...)
}

func (a *adoption) has(table string) bool { return a.columns[table] != nil }

func (a *adoption) name(table string) string { return pgx.Identifier{a.schema, table}.Sanitize() }

// move puts an older table into the store's schema. A view that has none of its
// columns takes its place: a program of the older system that starts again would
// make its tables anew, and work on beside.
func (a *adoption) move(table string) {
	a.add("ALTER TABLE "+a.name(table)+" SET SCHEMA loomgate",
		"CREATE VIEW "+a.name(table)+" AS SELECT 'in schema loomgate'::text AS moved")
}

// scoped is the change of a column of names: the scope goes in front.
func (a *adoption) scoped(column string) string {
	return fmt.Sprintf(`ALTER COLUMN %[1]s TYPE text COLLATE pg_catalog."C" USING %[2]s || %[1]s, ALTER COLUMN %[1]s SET NOT NULL`, column, literal(a.prefix))
}

// refs numbers the versions of lineage from 1, as the older system did for each
// name, and those of refs above: a ref's version is higher than its earlier ones.
func (a *adoption) refs() {
	if a.has("lineage") {
		a.move("lineage")
		a.add("ALTER TABLE loomgate.lineage RENAME COLUMN position TO version",
			"ALTER TABLE loomgate.lineage "+a.scoped("name")+", "+a.scoped("execution_id")+
				", ALTER COLUMN version TYPE bigint, ALTER COLUMN sequence TYPE bigint",
			"SELECT setval('loomgate.versions', coalesce(max(version), 0) + 1) FROM loomgate.lineage")
	}
	if a.has("refs") {
		a.move("refs")
		a.add("ALTER TABLE loomgate.refs "+a.scoped("name")+", "+a.scoped("execution_id")+", ALTER COLUMN sequence TYPE bigint"+
			", ADD COLUMN slot integer NOT NULL DEFAULT 0, ADD COLUMN version bigint NOT NULL DEFAULT nextval('loomgate.versions')",
			dropDefaults("refs", "slot", "version"))
	}
}

// dropDefaults leaves columns without a default: a writer that does not know them
// fails, instead of storing what this package could not tell from its own.
func dropDefaults(table string, columns ...string) string {
	for i, c := range columns {
		columns[i] = "ALTER COLUMN " + c + " DROP DEFAULT"
	}
	return "ALTER TABLE loomgate." + table + " " + strings.Join(columns, ", ")
}

func (a *adoption) timers() {
	if !a.has("timers") {
		return
	}
	a.move("timers")
	changes := []string{
		a.scoped("execution_id"),
		"ALTER COLUMN wake_at TYPE timestamptz USING " + a.time("timers", "wake_at"),
		"ADD COLUMN slot integer NOT NULL DEFAULT 0",
		"ADD COLUMN version bigint NOT NULL DEFAULT nextval('loomgate.versions')",
	}
	if _, there := a.columns["timers"]["redrive"]; there {
		changes = append(changes, "ALTER COLUMN redrive TYPE integer USING (redrive::jsonb->'attempt')::integer")
	} else {
		changes = append(changes, "ADD COLUMN redrive integer")
	}
	a.add("ALTER TABLE loomgate.timers "+strings.Join(changes, ", "), dropDefaults("timers", "slot", "version"))
}

// time reads a time as the older systems had it: as such, in UTC without saying so,
// or in milliseconds since 1970.
func (a *adoption) time(table, column string) string {
	switch a.columns[table][column].kind {
	case "timestamp without time zone":
		return column + " AT TIME ZONE 'UTC'"
	case "bigint":
		return "timestamptz 'epoch' + " + column + " * interval '1 millisecond'"
	}
	return column + "::timestamptz"
}

// fences stay until the directory's rows are made. The table that says how far that
// has come is also the marker that it is not done.
func (a *adoption) fences() {
	if a.has("fences") {
		a.move("fences")
		a.add("ALTER TABLE loomgate.fences RENAME TO older_fences",
			"ALTER TABLE loomgate.older_fences "+a.scoped("execution_id")+", ALTER COLUMN token TYPE bigint, ALTER COLUMN token SET NOT NULL")
	} else {
		a.add(`CREATE TABLE loomgate.older_fences (execution_id text COLLATE pg_catalog."C" PRIMARY KEY, token bigint NOT NULL)`)
	}
	a.add(`CREATE TABLE loomgate.backfill (one boolean PRIMARY KEY DEFAULT true CHECK (one), after text COLLATE pg_catalog."C" NOT NULL)`,
		"INSERT INTO loomgate.backfill (after) VALUES ('')")
}

// olderMetadataSQL is an older event's metadata as strings, without what are columns
// now. A kernel stamp counts only if it is JSON true; what else stood there stays.
const olderMetadataSQL = `CREATE FUNCTION loomgate.older_metadata(m jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
SELECT pg_catalog.jsonb_object_agg(key, value) FROM pg_catalog.jsonb_each_text(m) AS p(key, value)
WHERE value IS NOT NULL AND NOT (key = 'kernel' AND m->'kernel' = 'true') AND NOT (key = 'fence' AND pg_catalog.jsonb_typeof(m->'fence') = 'number')
$$`

const olderMetadataSizeSQL = `CREATE FUNCTION loomgate.older_metadata_size(m jsonb) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
SELECT coalesce(pg_catalog.sum(pg_catalog.octet_length(key) + pg_catalog.octet_length(value)), 0)::integer FROM pg_catalog.jsonb_each_text(loomgate.older_metadata(m)) AS p(key, value)
$$`

// events writes the table once more. Each expression reads the row as it was.
func (a *adoption) events() {
	for _, index := range a.indexes {
		a.add("DROP INDEX " + a.name(index)) // so that it is not built anew
	}
	a.move("events")
	a.add(olderMetadataSQL, olderMetadataSizeSQL,
		"ALTER TABLE loomgate.events RENAME COLUMN event_type TO kind",
		"ALTER TABLE loomgate.events ADD COLUMN IF NOT EXISTS event_id uuid, ADD COLUMN kernel boolean, ADD COLUMN answering boolean, ADD COLUMN fence bigint, ADD COLUMN size integer",
		dropDefaults("events", "event_id", "kind", "recorded_at", "metadata", "payload"))

	const (
		kernel = `coalesce(metadata::jsonb->'kernel' = 'true', false)`
		fence  = `CASE WHEN jsonb_typeof(metadata::jsonb->'fence') = 'number' THEN (metadata::jsonb->'fence')::bigint ELSE 0 END`
		// Most events have nothing beside the two; they need no call a row.
		plain = `coalesce(metadata::jsonb, '{}') IN ('{}', 'null') OR jsonb_typeof(metadata::jsonb) = 'object' AND metadata::jsonb - 'kernel' - 'fence' = '{}'
		AND coalesce(metadata::jsonb->'kernel' = 'true', true) AND coalesce(jsonb_typeof(metadata::jsonb->'fence') = 'number', true)`
	)
	kinds, answering := kernelKindsSQL()
	payload := a.bytes("payload")
	columns := []struct{ name, kind, using string }{
		{"sequence", "bigint", "sequence"},
		{"event_id", "uuid", "coalesce(event_id::text::uuid, " + a.eventID() + ")"},
		{"kind", "text", "kind"},
		{"kernel", "boolean", kernel},
		{"answering", "boolean", "kind IN (" + answering + ") OR kind NOT IN (" + kinds + ") AND " + kernel},
		{"fence", "bigint", fence},
		{"recorded_at", "timestamptz", a.time("events", "recorded_at")},
		{"size", "integer", "octet_length(kind) + coalesce(octet_length(" + payload + "), 0) + CASE WHEN " + plain + " THEN 0 ELSE loomgate.older_metadata_size(metadata::jsonb) END"},
		{"metadata", "jsonb", "CASE WHEN " + plain + " THEN NULL ELSE loomgate.older_metadata(metadata::jsonb) END"},
		{"payload", "bytea", "nullif(" + payload + ", '')"},
	}
	changes := []string{a.scoped("execution_id")}
	for _, c := range columns {
		changes = append(changes, fmt.Sprintf("ALTER COLUMN %s TYPE %s USING %s", c.name, c.kind, c.using))
		null := "SET NOT NULL"
		if c.name == "metadata" || c.name == "payload" {
			null = "DROP NOT NULL"
		}
		changes = append(changes, "ALTER COLUMN "+c.name+" "+null)
	}
	a.add("ALTER TABLE loomgate.events\n\t"+strings.Join(changes, ",\n\t"),
		"DROP FUNCTION loomgate.older_metadata_size(jsonb)", "DROP FUNCTION loomgate.older_metadata(jsonb)")
}

// eventID is a hash of an event's place: the same each time, and another tenant's is
// another.
func (a *adoption) eventID() string {
	place := "sequence || ':' || " + literal(a.prefix) + " || execution_id"
	return "encode(substring(sha256(convert_to(" + place + ", 'UTF8')) FOR 16), 'hex')::uuid"
}

// bytes is a column as bytes: JSON as its text.
func (a *adoption) bytes(column string) string {
	if a.columns["events"][column].kind == "bytea" {
		return column
	}
	return "convert_to(" + column + "::text, 'UTF8')"
}

func kernelKindsSQL() (all, answering string) {
	var every, some []string
	for _, k := range spi.KernelKinds() {
		every = append(every, literal(k.Kind))
		if k.Class == spi.Answering {
			some = append(some, literal(k.Kind))
		}
	}
	return strings.Join(every, ", "), strings.Join(some, ", ")
}

// identity makes the database a shard that owns all hash slots.
func (a *adoption) identity(id spi.Identity) {
	if id == (spi.Identity{}) {
		return
	}
	a.add(fmt.Sprintf("INSERT INTO loomgate.identity (cluster, shard, fingerprint, min_writer_major, min_writer_minor, version) VALUES (%s, %s, %s, %d, %d, 1)",
		literal(id.Cluster), literal(id.Shard), literal(id.Fingerprint), id.MinWriter.Major, id.MinWriter.Minor),
		fmt.Sprintf("INSERT INTO loomgate.slots (slot, state, epoch, peer, tenant) SELECT slot, %d, 1, '', '' FROM generate_series(0, %d) AS s(slot)", spi.SlotOwned, spi.HashSlots-1))
}

// validNames refuses names that no call could state.
func validNames(ctx context.Context, tx pgx.Tx, scope spi.Scope) error {
	for _, c := range [][2]string{{"refs", "name"}, {"timers", "execution_id"}, {"older_fences", "execution_id"}, {"events", "execution_id"}} {
		var name string
		err := tx.QueryRow(ctx, fmt.Sprintf("SELECT %[2]s FROM loomgate.%[1]s WHERE octet_length(%[2]s) NOT BETWEEN $1 AND $2 LIMIT 1", c[0], c[1]),
			len(scope.Prefix())+1, len(scope.Prefix())+spi.MaxOuterID).Scan(&name)
		if err == nil {
			return fmt.Errorf("the older %s %q in %s is empty or longer than %d bytes", c[1], strings.TrimPrefix(name, scope.Prefix()), c[0], spi.MaxOuterID)
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
	}
	return nil
}

// place gives refs and timers their slots.
func (a *Adoption) place(ctx context.Context, tx pgx.Tx) error {
	for _, c := range [][2]string{{"refs", "name"}, {"timers", "execution_id"}} {
		rows, err := tx.Query(ctx, fmt.Sprintf("SELECT DISTINCT %[2]s FROM loomgate.%[1]s", c[0], c[1]))
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		for some := range slices.Chunk(names, 10_000) {
			_, err := tx.Exec(ctx, fmt.Sprintf("UPDATE loomgate.%[1]s t SET slot = p.slot FROM unnest($1::text[], $2::integer[]) AS p(name, slot) WHERE t.%[2]s = p.name", c[0], c[1]),
				some, a.slots(some))
			if err != nil {
				return err
			}
		}
	}
	return nil
}
