package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc"

	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/decorators/coalescing"
	"github.com/loomgate/loomgate/decorators/crypto"
	"github.com/loomgate/loomgate/decorators/profiling"
	"github.com/loomgate/loomgate/decorators/sharded"
	"github.com/loomgate/loomgate/decorators/tenant"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/internal/throwaway"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// payload is what every append carries, JSON for whoever stores only that.
var payload = []byte(`{"order":"order-17","total":12.30,"items":[{"sku":"AB-1","n":2},{"sku":"CD-22","n":1}],"note":"` + strings.Repeat("x", 50) + `"}`)

// gathered is how many appends a batch, or a stream's window, has.
const gathered = 16

const byHandSchema = `CREATE TABLE events (execution_id text COLLATE "C", sequence bigint, kind text, payload bytea, PRIMARY KEY (execution_id, sequence));
CREATE TABLE fences (execution_id text COLLATE "C" PRIMARY KEY, fence bigint)`

const byHandSQL = `INSERT INTO events SELECT $1, $2, 'Noted', $3 WHERE coalesce((SELECT fence FROM fences WHERE execution_id = $1), 0) <= $4`

// Queries that say how many appends a database holds, and in how many executions they do
// not go from 1 on without a gap.
const (
	countByHand = `SELECT count(*) FROM events`
	gapsByHand  = `SELECT count(*) FROM (SELECT FROM events GROUP BY execution_id HAVING max(sequence) <> count(*) OR min(sequence) <> 1) g`
	countOurs   = `SELECT count(*) FROM loomgate.events`
	gapsOurs    = `SELECT count(*) FROM (SELECT FROM loomgate.events GROUP BY execution_id HAVING max(sequence) <> count(*) OR min(sequence) <> 1) g`
	countMDB    = `SELECT count(*) FROM message_store.messages`
	gapsMDB     = `SELECT count(*) FROM (SELECT FROM message_store.messages GROUP BY stream_name HAVING max(position) <> count(*) - 1) g`
)

// A contender is a side, and the database in which its appends have to be.
type contender struct {
	side
	dsn         string
	count, gaps string
	stored      int64 // what was acknowledged
}

// An arena is one Postgres with everything that is compared over it.
type arena struct {
	*server
	cpu        processes
	prefix     string // of the executions' names: no two turns have one in common
	shard      string // the DSN of the gateway's database
	contenders []*contender
	cleanups   []func()
}

func (a *arena) close() {
	for i := len(a.cleanups) - 1; i >= 0; i-- {
		a.cleanups[i]()
	}
}

func (a *arena) cleanup(f func()) { a.cleanups = append(a.cleanups, f) }

func (a *arena) add(name, dsn, count, gaps string, worker func(turn, worker int) (func(context.Context, int64) error, int)) {
	a.contenders = append(a.contenders, &contender{side: side{name, worker}, dsn: dsn, count: count, gaps: gaps})
}

// id names an execution of a worker's turn.
func id(name string, turn, worker, part int) spi.ExecutionID {
	return spi.ExecutionID(fmt.Sprintf("%s-%d-%d-%d", name, turn, worker, part))
}

func one(id spi.ExecutionID, head int64) spi.AppendRequest {
	return spi.AppendRequest{Execution: id, ExpectedHead: head, Events: []spi.Event{{ID: spi.NewEventID(), Kind: "Noted", Payload: payload}}}
}

// newArena starts everything.
func newArena(ctx context.Context) (_ *arena, err error) {
	a := &arena{}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	gateway, key, err := a.startGateway(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(a.addByHand(ctx), a.addOurs(ctx)); err != nil {
		return nil, err
	}
	return a, a.addGateway(ctx, gateway, key)
}

// startGateway starts a Postgres and a gateway over it.
func (a *arena) startGateway(ctx context.Context) (addr, key string, err error) {
	if addr, err = throwaway.FreeAddress(); err != nil {
		return "", "", err
	}
	http, err := throwaway.FreeAddress()
	if err != nil {
		return "", "", err
	}
	cluster, err := throwaway.Start(ctx, throwaway.Options{Shards: 1, GRPC: addr, HTTP: http})
	if err != nil {
		return "", "", err
	}
	a.cleanup(cluster.Close)
	a.server, a.shard = &server{Cluster: cluster.Servers[0]}, cluster.DSNs[0]
	if err := a.look(ctx); err != nil {
		return "", "", err
	}
	keyFile, err := cluster.Prepare(ctx)
	if err != nil {
		return "", "", err
	}
	log, err := os.Create(cluster.Path("log"))
	if err != nil {
		return "", "", err
	}
	g, err := cluster.Serve(ctx, http, log)
	if err != nil {
		return "", "", err
	}
	a.cleanup(func() { _ = g.Stop() })
	if _, err := cluster.Do(ctx, "tenants", "create", "bench", "--addr", addr, "--key-file", keyFile); err != nil {
		return "", "", err
	}
	raw, err := os.ReadFile(keyFile)
	a.cpu = processes{postgres: []int{a.pid}, gateway: g.PID()}
	return addr, strings.TrimSpace(string(raw)), err
}

// addByHand adds what a user would write, and message-db.
func (a *arena) addByHand(ctx context.Context) error {
	connect := func() (*pgxpool.Pool, error) {
		pool, err := a.pool(ctx, pgtest.ICU, byHandSchema)
		if err == nil {
			a.cleanup(pool.Close)
		}
		return pool, err
	}
	single, err := connect()
	if err != nil {
		return err
	}
	a.add("by hand: single inserts", single.Config().ConnString(), countByHand, gapsByHand, func(turn, w int) (func(context.Context, int64) error, int) {
		id := string(id(a.prefix, turn, w, 0))
		return func(ctx context.Context, n int64) error {
			_, err := single.Exec(ctx, byHandSQL, id, n+1, payload, 0)
			return err
		}, 1
	})
	batch, err := connect()
	if err != nil {
		return err
	}
	a.add(fmt.Sprintf("by hand: pgx batches of %d", gathered), batch.Config().ConnString(), countByHand, gapsByHand, func(turn, w int) (func(context.Context, int64) error, int) {
		return func(ctx context.Context, n int64) error {
			b := &pgx.Batch{}
			for part := range gathered {
				b.Queue(byHandSQL, string(id(a.prefix, turn, w, part)), n+1, payload, 0)
			}
			return batch.SendBatch(ctx, b).Close()
		}, gathered
	})
	bulk, err := connect()
	if err != nil {
		return err
	}
	const rows = 1000
	a.add(fmt.Sprintf("by hand: COPY of %d rows, no guard", rows), bulk.Config().ConnString(), countByHand, gapsByHand, func(turn, w int) (func(context.Context, int64) error, int) {
		id := string(id(a.prefix, turn, w, 0))
		return func(ctx context.Context, n int64) error {
			_, err := bulk.CopyFrom(ctx, pgx.Identifier{"events"}, []string{"execution_id", "sequence", "kind", "payload"}, pgx.CopyFromSlice(rows, func(i int) ([]any, error) {
				return []any{id, n*rows + int64(i) + 1, "Noted", payload}, nil
			}))
			return err
		}, rows
	})
	mdb, err := installMessageDB(ctx, a.server)
	if err != nil {
		return err
	}
	a.cleanup(mdb.Close)
	a.add("message-db: write_message", mdb.Config().ConnString(), countMDB, gapsMDB, func(turn, w int) (func(context.Context, int64) error, int) {
		stream := strings.ReplaceAll(string(id(a.prefix, turn, w, 0)), "-", "") + "-1" // a category of its own
		return func(ctx context.Context, n int64) error {
			_, err := mdb.Exec(ctx, `SELECT write_message($1, $2, 'Noted', $3::jsonb, NULL, $4)`, spi.NewEventID().String(), stream, string(payload), n-1)
			return err
		}, 1
	})
	return nil
}

// addStore adds a store of ours, one append at a time.
func (a *arena) addStore(name, dsn string, s *spi.Store) {
	a.add(name, dsn, countOurs, gapsOurs, func(turn, w int) (func(context.Context, int64) error, int) {
		id := id(a.prefix+name, turn, w, 0)
		return func(ctx context.Context, n int64) error {
			_, err := spi.Append(ctx, s, one(id, n))
			return err
		}, 1
	})
}

// addBatches adds a store of ours, batches of appends to different executions.
func (a *arena) addBatches(name, dsn string, s *spi.Store) {
	a.add(name, dsn, countOurs, gapsOurs, func(turn, w int) (func(context.Context, int64) error, int) {
		return func(ctx context.Context, n int64) error {
			req := spi.AppendBatchRequest{Appends: make([]spi.AppendRequest, gathered)}
			for part := range req.Appends {
				req.Appends[part] = one(id(a.prefix+name, turn, w, part), n)
			}
			res, err := spi.AppendBatch(ctx, s, req)
			for _, r := range res.Results {
				err = errors.Join(err, r.Err)
			}
			return err
		}, gathered
	})
}

func (a *arena) addOurs(ctx context.Context) error {
	direct, dsn, err := a.backend(ctx, pgtest.ICU)
	if err != nil {
		return err
	}
	a.cleanup(func() { direct.Close() })
	a.addStore("our backend, direct", dsn, direct.Store())
	a.addBatches(fmt.Sprintf("our backend, batches of %d", gathered), dsn, direct.Store())
	gather := func(s *spi.Store) (*spi.Store, error) {
		c, err := coalescing.New(s, coalescing.Options{})
		if err != nil {
			return nil, err
		}
		a.cleanup(func() { c.Close() })
		return c.Store(), nil
	}
	under, dsn, err := a.backend(ctx, pgtest.ICU)
	if err != nil {
		return err
	}
	a.cleanup(func() { under.Close() })
	coalesced, err := gather(under.Store())
	if err != nil {
		return err
	}
	a.addStore("our backend, coalesced", dsn, coalesced)
	under, dsn, err = a.backend(ctx, pgtest.ICU)
	if err != nil {
		return err
	}
	a.cleanup(func() { under.Close() })
	if coalesced, err = gather(under.Store()); err != nil {
		return err
	}
	whole, err := wholeStack(ctx, coalesced)
	if err != nil {
		return err
	}
	a.addStore("the full stack, in process", dsn, whole)
	return nil
}

// wholeStack puts every layer over stores that gather appends.
func wholeStack(ctx context.Context, shards ...*spi.Store) (*spi.Store, error) {
	list := make([]sharded.Shard, len(shards))
	for i, s := range shards {
		profiled, err := profiling.New(s, profiling.Options{Name: "bench"})
		if err != nil {
			return nil, err
		}
		list[i] = sharded.Shard{Store: profiled}
	}
	s, err := sharded.New(ctx, list, sharded.Options{Exclusive: true})
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ring, err := crypto.CreateKeyring(filepath.Join(dir, "keyring"), []byte("a secret of the benchmark's, long enough"))
	if err != nil {
		return nil, err
	}
	if s, err = crypto.New(s, ring, crypto.Options{}); err != nil {
		return nil, err
	}
	return tenant.New("bench", s)
}

func (a *arena) addGateway(ctx context.Context, addr, key string) error {
	options := remote.Options{APIKey: key, Tenant: "bench", Plaintext: true}
	client, err := remote.Open(ctx, addr, options)
	if err != nil {
		return err
	}
	a.cleanup(func() { client.Close() })
	a.addStore("the gateway, unary", a.shard, client.Store())
	a.addBatches(fmt.Sprintf("the gateway, batches of %d", gathered), a.shard, client.Store())
	connection, err := remote.Dial(addr, options)
	if err != nil {
		return err
	}
	a.cleanup(func() { connection.Close() })
	a.add(fmt.Sprintf("the gateway, streams with a window of %d", gathered), a.shard, countOurs, gapsOurs, func(turn, w int) (func(context.Context, int64) error, int) {
		s := &streamed{connection: connection, name: func(part int) string { return string(id(a.prefix+"stream", turn, w, part)) }}
		return s.call, gathered
	})
	return nil
}

// A streamed worker keeps a stream open for its turn.
type streamed struct {
	connection *grpc.ClientConn
	stream     grpc.BidiStreamingClient[pb.AppendStreamRequest, pb.AppendStreamResponse]
	name       func(part int) string
}

func (s *streamed) call(ctx context.Context, n int64) (err error) {
	if s.stream == nil {
		if s.stream, err = pb.NewAppendStreamServiceClient(s.connection).AppendStream(ctx); err != nil {
			return err
		}
	}
	for part := range gathered {
		id := spi.NewEventID()
		err := s.stream.Send(&pb.AppendStreamRequest{Tag: uint64(part), Append: &pb.AppendRequest{
			Execution: s.name(part), ExpectedHead: n, Events: []*pb.Event{{Id: id.String(), Kind: "Noted", Content: &pb.Event_Payload{Payload: payload}}},
		}})
		if err != nil {
			return err
		}
	}
	for range gathered {
		res, err := s.stream.Recv()
		if err != nil {
			return err
		}
		if refused := res.GetError(); refused != nil {
			return fmt.Errorf("refused: %v", refused)
		}
	}
	return nil
}

// holds compares what a database holds with what was acknowledged.
func (c *contender) holds(ctx context.Context) (count, gaps int64, err error) {
	pool, err := pgxpool.New(ctx, c.dsn)
	if err != nil {
		return 0, 0, err
	}
	defer pool.Close()
	if err := pool.QueryRow(ctx, c.count).Scan(&count); err != nil {
		return 0, 0, err
	}
	return count, gaps, pool.QueryRow(ctx, c.gaps).Scan(&gaps)
}

// appends compares appends of one event, by clients at once.
func appends(ctx context.Context, b *bench) error {
	a, err := newArena(ctx)
	if err != nil {
		return err
	}
	defer a.close()
	before, _, err := a.contenders[len(a.contenders)-1].holds(ctx) // tenants and keys are events too
	if err != nil {
		return err
	}
	clients := []int{1, 8, 64, 256}
	if b.quick {
		clients = []int{64}
	}
	drawn := plot{title: "Appends a second", x: "clients", y: "appends a second", lines: make([]line, len(a.contenders))}
	for _, n := range clients {
		a.prefix = fmt.Sprintf("c%d-", n)
		turns, err := inTurn(ctx, b.rounds, n, b.span, a.cpu, a.sides())
		if err != nil {
			return err
		}
		a.tell(b, n, turns)
		for i, c := range a.contenders {
			drawn.lines[i].name = c.name
			drawn.lines[i].points = append(drawn.lines[i].points, point{X: float64(n), Y: median(turns[i], perSecond)})
			for _, t := range turns[i] {
				c.stored += t.count
			}
		}
	}
	if len(clients) > 1 {
		b.report.draw(drawn)
	}
	if err := a.crashAndRecover(ctx); err != nil {
		return err
	}
	return a.proof(ctx, b, before)
}

func (a *arena) sides() (sides []side) {
	for _, c := range a.contenders {
		sides = append(sides, c.side)
	}
	return sides
}

// tell reports what clients at once have reached.
func (a *arena) tell(b *bench, clients int, turns [][]turn) {
	var rows [][]string
	for i, c := range a.contenders {
		t := turns[i]
		rows = append(rows, []string{
			c.name, fmt.Sprintf("%.0f", median(t, perSecond)), fmt.Sprintf("%.2f", ratio(t, turns[0], perSecond)),
			fmt.Sprintf("%.2f", median(t, p50)), fmt.Sprintf("%.2f", median(t, p99)),
			fmt.Sprintf("%.0f", median(t, micros(func(t turn) time.Duration { return t.db }))),
			fmt.Sprintf("%.0f", median(t, micros(func(t turn) time.Duration { return t.gate }))),
			fmt.Sprintf("%.0f", median(t, micros(func(t turn) time.Duration { return t.client }))),
		})
	}
	b.report.say("%d clients:\n", clients)
	b.report.table([]string{"", "appends/s", "against single inserts", "p50 ms a call", "p99 ms a call", "database µs an append", "gateway µs", "client µs"}, rows)
	for i, c := range a.contenders[1:] {
		target := 0.0
		if clients == 64 {
			switch {
			case strings.HasPrefix(c.name, "the gateway, unary"):
				target = 2
			case strings.HasPrefix(c.name, "the gateway"):
				target = 4
			}
		}
		b.report.ratio(fmt.Sprintf("appends a second of %d clients: %s / %s", clients, c.name, a.contenders[0].name), ratio(turns[i+1], turns[0], perSecond), target, higher)
		if c.name == "the gateway, unary" {
			target := 0.0
			if clients == 64 {
				target = 1
			}
			b.report.ratio(fmt.Sprintf("p50 of %d clients: %s / %s", clients, c.name, a.contenders[0].name), ratio(turns[i+1], turns[0], p50), target, lower)
		}
	}
	b.report.say("")
}

// proof shows that every append that was acknowledged is there, once and in order, after
// the server was killed.
func (a *arena) proof(ctx context.Context, b *bench, before int64) error {
	want := map[string]int64{a.shard: before}
	for _, c := range a.contenders {
		want[c.dsn] += c.stored
	}
	total := int64(0)
	for _, c := range a.contenders {
		count, gaps, err := c.holds(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if count != want[c.dsn] || gaps != 0 {
			return fmt.Errorf("%s: %d appends are there, %d were acknowledged; %d executions have gaps", c.name, count, want[c.dsn], gaps)
		}
		total += c.stored
	}
	b.report.say("After the server was killed with -9 and started again, each of the %d appends that were acknowledged is there, once and in order.\n", total)
	return nil
}
