package postgres

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// TracedBy lets a tracer see what the database is asked. It may be a [pgx.BatchTracer]
// and a [pgxpool.AcquireTracer] too. It is given arguments, which are tenants' data: it
// must show none.
func TracedBy(tracer pgx.QueryTracer) Option { return func(o *options) { o.tracer = tracer } }

// Pool returns how the connections are at the moment.
func (d *Database) Pool() *pgxpool.Stat { return d.pool.Stat() }
