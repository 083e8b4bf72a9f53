package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

const (
	pageShards = 4
	pageLimit  = 1000
)

// A pager lists ids, a page at a time and all of them.
type pager struct {
	name string
	page func(ctx context.Context, after string) ([]string, error) // nil: only passes differ
	pass func(ctx context.Context) (int, error)
}

// pages compares pages of 1,000 and passes through everything, over four shards.
func pages(ctx context.Context, b *bench) error {
	s, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer s.Remove()
	sets, err := idSets(b)
	if err != nil {
		return err
	}
	for _, set := range sets {
		if err := pagesOf(ctx, b, s, set); err != nil {
			return fmt.Errorf("%s: %w", set.name, err)
		}
	}
	return wrongMerges(ctx, b, s)
}

// An idSet is ids in databases of a kind.
type idSet struct {
	name string
	ids  []string
	kind pgtest.Kind
}

// idSets returns uniform ids, and such as people give, or those of a file.
func idSets(b *bench) ([]idSet, error) {
	if b.ids != "" {
		ids, err := readIDs(b.ids)
		return []idSet{{"the ids of a file", ids, pgtest.ICU}}, err
	}
	n := 1_000_000
	if b.quick {
		n = 50_000
	}
	uniform, people := make([]string, n), make([]string, n)
	for i := range n {
		uniform[i] = fmt.Sprintf("order-%08d", i)
		people[i] = peopleID(i)
	}
	named := fmt.Sprintf("%d ids as people give them", n)
	return []idSet{{fmt.Sprintf("%d uniform ids", n), uniform, pgtest.ICU}, {named, people, pgtest.ICU}, {named + ", in C databases", people, pgtest.C}}, nil
}

func readIDs(path string) (ids []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		ids = append(ids, lines.Text())
	}
	slices.Sort(ids)
	return slices.Compact(ids), lines.Err()
}

// peopleID returns an id in one of the shapes that people write: code points and a
// dictionary put them in different orders.
func peopleID(i int) string {
	shapes := []string{"Order_%d", "order-%d", "@acme/billing-%d", "ORDER_%d", "user_a1-%d", "userA1-%d", "été-%d", "𝒪rder-%d", "order.%d", "Ångström_%d"}
	return fmt.Sprintf(shapes[i%len(shapes)], i/len(shapes))
}

func pagesOf(ctx context.Context, b *bench, s *server, set idSet) error {
	name, ids := set.name, set.ids
	slices.Sort(ids)
	pagers, closeAll, err := makePagers(ctx, s, set)
	defer closeAll()
	if err != nil {
		return err
	}
	for _, p := range pagers {
		if p.page == nil {
			continue
		}
		if err := rightPages(ctx, p, ids); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	var rows [][]string
	pageTimes, passTimes := make([][]float64, len(pagers)), make([][]float64, len(pagers))
	for round := range b.rounds * 20 {
		after := ids[round*7919%(len(ids)-pageLimit)]
		for i, p := range pagers {
			if p.page == nil {
				continue
			}
			begin := time.Now()
			if _, err := p.page(ctx, after); err != nil {
				return err
			}
			pageTimes[i] = append(pageTimes[i], time.Since(begin).Seconds())
		}
	}
	for range b.rounds {
		for i, p := range pagers {
			begin := time.Now()
			n, err := p.pass(ctx)
			if err != nil || n != len(ids) {
				return fmt.Errorf("%s: a pass finds %d of %d ids (%w)", p.name, n, len(ids), err)
			}
			passTimes[i] = append(passTimes[i], time.Since(begin).Seconds())
		}
	}
	for i, p := range pagers {
		page, against := "", ""
		if p.page != nil {
			page, against = fmt.Sprintf("%.2f", medianOf(pageTimes[i])*1000), fmt.Sprintf("%.2f", neighbours(pageTimes[i], pageTimes[0]))
		}
		rows = append(rows, []string{p.name, page, against, fmt.Sprintf("%.0f", medianOf(passTimes[i])*1000), fmt.Sprintf("%.2f", neighbours(passTimes[i], passTimes[0]))})
	}
	b.report.say("%s. Each way first listed the ids of up to 100 pages, each once, in code point order; each pass finds all.\n", name)
	b.report.table([]string{"", "ms a page of 1,000", "against unsharded", "ms a pass", "against unsharded"}, rows)
	for i, p := range pagers[1:] {
		if p.page != nil {
			b.report.ratio(fmt.Sprintf("a page of 1,000 of %s: %s / %s", name, p.name, pagers[0].name), neighbours(pageTimes[i+1], pageTimes[0]), 0, lower)
		}
		b.report.ratio(fmt.Sprintf("a pass through %s: %s / %s", name, p.name, pagers[0].name), neighbours(passTimes[i+1], passTimes[0]), 0, lower)
	}
	b.report.say("")
	return nil
}

func medianOf(all []float64) float64 { return median(all, func(v float64) float64 { return v }) }

func neighbours(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return medianOf(ratios)
}

// checked is how many pages rightPages looks at.
const checked = 100

// rightPages checks that pages one after the other hold every id once, in order.
func rightPages(ctx context.Context, p pager, ids []string) error {
	after, at := "", 0
	for range checked {
		page, err := p.page(ctx, after)
		if err != nil {
			return err
		}
		if at+len(page) > len(ids) || !slices.Equal(page, ids[at:at+len(page)]) {
			return fmt.Errorf("the page after %q is not what is there", after)
		}
		if at += len(page); len(page) < pageLimit {
			if at != len(ids) {
				return fmt.Errorf("%d of %d ids are listed", at, len(ids))
			}
			return nil
		}
		after = page[len(page)-1]
	}
	return nil
}

const bareIDs = `SELECT execution_id FROM loomgate.executions WHERE live AND execution_id > $1 ORDER BY execution_id LIMIT $2`

func readPage(ctx context.Context, pool *pgxpool.Pool, sql, after string) ([]string, error) {
	rows, err := pool.Query(ctx, sql, after, pageLimit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// passBy goes through everything page by page.
func passBy(page func(context.Context, string) ([]string, error)) func(context.Context) (int, error) {
	return func(ctx context.Context) (n int, err error) {
		for after := ""; ; {
			ids, err := page(ctx, after)
			if err != nil {
				return n, err
			}
			if n += len(ids); len(ids) < pageLimit {
				return n, nil
			}
			after = ids[len(ids)-1]
		}
	}
}

// makePagers fills one database, four shards and a coordinator with foreign tables.
func makePagers(ctx context.Context, s *server, set idSet) (pagers []pager, closeAll func(), err error) {
	a := &arena{server: s}
	whole, wholePool, err := a.filled(ctx, set, func(string) (int, bool) { return 0, true })
	if err != nil {
		return nil, a.close, err
	}
	bare := func(ctx context.Context, after string) ([]string, error) {
		return readPage(ctx, wholePool, bareIDs, after)
	}
	pagers = append(pagers, pager{"one database, the bare query", bare, passBy(bare)})
	pagers = append(pagers, storePager("one database, our backend", whole.store))

	owner := map[spi.Slot]int{}
	for i, share := range sharded.Share(pageShards) {
		for _, r := range share {
			owner[r.Slot] = i
		}
	}
	var shards []sharded.Shard
	var pools []*pgxpool.Pool
	for i := range pageShards {
		f, pool, err := a.filled(ctx, set, func(id string) (int, bool) {
			slot := sharded.ByExecution.Slot(id)
			return int(slot), owner[slot] == i
		})
		if err != nil {
			return nil, a.close, err
		}
		shards = append(shards, sharded.Shard{Name: fmt.Sprintf("shard-%d", i), Store: f.store})
		pools = append(pools, pool)
		if err := f.own(ctx, i, sharded.Share(pageShards)[i]); err != nil {
			return nil, a.close, err
		}
	}
	naive := func(ctx context.Context, after string) ([]string, error) {
		return naivePage(ctx, pools, bareIDs, after)
	}
	pagers = append(pagers, pager{"4 shards, a page of each and a sort", naive, passBy(naive)})
	cluster, err := sharded.Open(ctx, shards, sharded.Options{})
	if err != nil {
		return nil, a.close, err
	}
	ours := storePager("4 shards, ours, stateless", cluster.Store())
	pagers = append(pagers, ours, pager{"4 shards, ours, streaming", nil, func(ctx context.Context) (n int, err error) {
		for _, err := range cluster.Executions(ctx, "", "") {
			if err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	}})
	foreign, err := a.foreign(ctx, set.kind, pools)
	if err != nil {
		return nil, a.close, err
	}
	return append(pagers, foreign), a.close, nil
}

func storePager(name string, s *spi.Store) pager {
	page := func(ctx context.Context, after string) ([]string, error) {
		res, err := spi.ListExecutions(ctx, s, spi.ListExecutionsRequest{After: after, Limit: pageLimit})
		if err != nil {
			return nil, err
		}
		ids := make([]string, len(res.Executions))
		for i, id := range res.Executions {
			ids[i] = string(id)
		}
		return ids, nil
	}
	return pager{name, page, passBy(page)}
}

// naivePage asks each shard for a whole page at once, and keeps the first of all.
func naivePage(ctx context.Context, pools []*pgxpool.Pool, sql, after string) ([]string, error) {
	found := make([][]string, len(pools))
	var asking errgroup.Group
	for i, pool := range pools {
		asking.Go(func() (err error) {
			found[i], err = readPage(ctx, pool, sql, after)
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return nil, err
	}
	all := slices.Sorted(slices.Values(slices.Concat(found...)))
	return all[:min(len(all), pageLimit)], nil
}

type filledDatabase struct {
	store *spi.Store
	own   func(ctx context.Context, i int, slots []spi.SlotRecord) error
}

// filled makes a database of the ids that are its own, with their slots.
func (a *arena) filled(ctx context.Context, set idSet, slot func(id string) (slot int, own bool)) (filledDatabase, *pgxpool.Pool, error) {
	db, dsn, err := a.backend(ctx, set.kind)
	if err != nil {
		return filledDatabase{}, nil, err
	}
	a.cleanup(func() { db.Close() })
	ids := set.ids
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return filledDatabase{}, nil, err
	}
	a.cleanup(pool.Close)
	f := filledDatabase{db.Store(), func(ctx context.Context, i int, slots []spi.SlotRecord) error {
		_, err := pool.Exec(ctx, "ALTER TABLE loomgate.executions RENAME TO filled; CREATE TABLE loomgate.executions (LIKE loomgate.filled)", pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return err
		}
		_, err = spi.ChangeOwnership(ctx, db.Store(), spi.ChangeOwnershipRequest{Slots: slots, Identity: spi.Identity{
			Cluster: "bench", Shard: fmt.Sprintf("shard-%d", i), Fingerprint: sharded.ByExecution.Fingerprint(),
		}})
		if err != nil {
			return err
		}
		_, err = pool.Exec(ctx, "DROP TABLE loomgate.executions; ALTER TABLE loomgate.filled RENAME TO executions", pgx.QueryExecModeSimpleProtocol)
		return err
	}}
	at := -1
	_, err = pool.CopyFrom(ctx, pgx.Identifier{"loomgate", "executions"}, []string{"execution_id", "slot", "live"}, pgx.CopyFromFunc(func() ([]any, error) {
		for at++; at < len(ids); at++ {
			if slot, own := slot(ids[at]); own {
				return []any{ids[at], int32(slot), true}, nil
			}
		}
		return nil, nil
	}))
	if err == nil {
		_, err = pool.Exec(ctx, "VACUUM ANALYZE loomgate.executions")
	}
	return f, pool, err
}

// foreign makes a coordinator: partitions by slot that are foreign tables, so that a
// page is a Merge Append of what the shards have sorted.
func (a *arena) foreign(ctx context.Context, kind pgtest.Kind, pools []*pgxpool.Pool) (pager, error) {
	pool, err := a.pool(ctx, kind, `CREATE EXTENSION postgres_fdw; CREATE TABLE executions (execution_id text COLLATE "C" NOT NULL, slot integer NOT NULL, live boolean NOT NULL) PARTITION BY RANGE (slot)`)
	if err != nil {
		return pager{}, err
	}
	a.cleanup(pool.Close)
	for i, shard := range pools {
		c := shard.Config().ConnConfig
		_, err := pool.Exec(ctx, fmt.Sprintf(`CREATE SERVER s%[1]d FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%[2]s', port '%[3]d', dbname '%[4]s', fetch_size '%[5]d', use_remote_estimate 'false');
CREATE USER MAPPING FOR CURRENT_USER SERVER s%[1]d OPTIONS (user '%[6]s');
CREATE FOREIGN TABLE executions_%[1]d PARTITION OF executions FOR VALUES FROM (%[7]d) TO (%[8]d) SERVER s%[1]d OPTIONS (schema_name 'loomgate', table_name 'executions')`,
			i, c.Host, c.Port, c.Database, foreignFetch, c.User, i*spi.HashSlots/pageShards, (i+1)*spi.HashSlots/pageShards), pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return pager{}, err
		}
	}
	if _, err := pool.Exec(ctx, "ANALYZE executions"); err != nil { // what the planner knows of the shards
		return pager{}, err
	}
	page := func(ctx context.Context, after string) ([]string, error) {
		return readPage(ctx, pool, `SELECT execution_id FROM executions WHERE live AND execution_id > $1 ORDER BY execution_id LIMIT $2`, after)
	}
	return pager{fmt.Sprintf("postgres_fdw, Merge Append, fetch_size %d", foreignFetch), page, func(ctx context.Context) (n int, err error) {
		rows, err := pool.Query(ctx, `SELECT execution_id FROM executions WHERE live ORDER BY execution_id`)
		if err != nil {
			return 0, err
		}
		defer rows.Close()
		for rows.Next() {
			n++
		}
		return n, rows.Err()
	}}, nil
}

// foreignFetch was the best of 100, 300, 1,000 and 10,000.
const foreignFetch = 1000

// wrongMerges shows what becomes of a merge over databases whose order is a dictionary's:
// an application that merges by its own order skips and repeats.
func wrongMerges(ctx context.Context, b *bench, s *server) error {
	a := &arena{server: s}
	defer a.close()
	const n = 20_000
	var pools []*pgxpool.Pool
	for i := range pageShards {
		pool, err := a.pool(ctx, pgtest.ICU, `CREATE TABLE executions (execution_id text PRIMARY KEY)`) // the default collation
		if err != nil {
			return err
		}
		a.cleanup(pool.Close)
		pools = append(pools, pool)
		_, err = pool.CopyFrom(ctx, pgx.Identifier{"executions"}, []string{"execution_id"}, pgx.CopyFromSlice(n/pageShards, func(k int) ([]any, error) { return []any{peopleID(k*pageShards + i)}, nil }))
		if err != nil {
			return err
		}
	}
	seen := map[string]int{}
	after, turns := "", 0
	for ; turns < 10*n/pageLimit; turns++ { // it may never end
		page, err := naivePage(ctx, pools, `SELECT execution_id FROM executions WHERE execution_id > $1 ORDER BY execution_id LIMIT $2`, after)
		if err != nil {
			return err
		}
		for _, id := range page {
			seen[id]++
		}
		if len(page) < pageLimit {
			break
		}
		after = page[len(page)-1]
	}
	repeated := 0
	for _, times := range seen {
		repeated += times - 1
	}
	b.report.say("**Wrong:** the same page of each shard and a sort, where the column has an ICU database's default collation: of %d ids as people give them, %d are skipped and %d are listed again.\n", n, n-len(seen), repeated)
	return nil
}
