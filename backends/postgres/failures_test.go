package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/backends/postgres"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"
)

func noted(n int) []spi.Event {
	events := make([]spi.Event, n)
	for i := range events {
		events[i] = spi.Event{ID: spi.NewEventID(), Kind: "Noted"}
	}
	return events
}

// with returns a DSN with one more parameter.
func with(tb testing.TB, dsn, key, value string) string {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	q := u.Query()
	q.Set(key, value)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // which pgx reads as a plus
	return u.String()
}

func TestAPoolOfOneConnectionIsEnoughForEveryMethodAtOnce(t *testing.T) {
	db := migrated.Fresh(t, pgtest.ICU)
	db.DSN = with(t, db.DSN, "pool_max_conns", "1")
	db.Direct = db.DSN
	s := open(t, db).Store()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a deadlock's end
	defer cancel()
	if _, err := spi.Append(ctx, s, spi.AppendRequest{Execution: "from", Events: noted(3)}); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() {
			_, err := spi.CopyPrefix(ctx, s, spi.CopyPrefixRequest{From: "from", To: spi.ExecutionID(fmt.Sprint("to-", i)), N: 2})
			if err != nil {
				t.Error(err)
			}
			_, err = spi.Append(ctx, s, spi.AppendRequest{Execution: "from", ExpectedHead: 7, Events: noted(1)})
			if _, conflict := errors.AsType[*spi.ConflictError](err); !conflict {
				t.Error(err)
			}
			_, err = spi.GetOwnership(ctx, s, spi.GetOwnershipRequest{})
			if err != nil {
				t.Error(err)
			}
			_, err = spi.Head(ctx, s, spi.HeadRequest{Execution: "from", Route: spi.Route{Slot: 1, Epoch: 1}})
			if _, misrouted := errors.AsType[*spi.MisroutedError](err); !misrouted {
				t.Error(err) // the error asks for the shard's name
			}
		})
	}
	calls.Wait()
}

func TestCanceledCallsLeaveNoTransactionBehind(t *testing.T) {
	db := migrated.Fresh(t, pgtest.ICU)
	s := open(t, db).Store()
	for i := range 60 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*50*time.Microsecond)
		_, _ = spi.Append(ctx, s, spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, Events: noted(20)})
		cancel()
	}
	watch, err := pgx.Connect(t.Context(), db.Direct)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close(context.WithoutCancel(t.Context()))
	deadline, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for open := 1; open > 0; { // a server notices a closed connection in its own time
		err := watch.QueryRow(deadline, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'").Scan(&open)
		if err != nil {
			t.Fatal("transactions are left open: ", err)
		}
	}
	if _, err := spi.Append(t.Context(), s, spi.AppendRequest{Execution: "e", ExpectedHead: spi.AnyHead, Events: noted(1)}); err != nil {
		t.Error(err)
	}
}

// A cutter is a proxy that, when armed, lets the next request through and loses the
// answer.
type cutter struct {
	listener net.Listener
	target   string
	armed    atomic.Bool
	open     sync.WaitGroup
}

func newCutter(t *testing.T, target string) *cutter {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: listener, target: target}
	c.open.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			c.open.Go(func() { c.serve(client) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		c.open.Wait()
	})
	return c
}

func (c *cutter) serve(client net.Conn) {
	var up sync.WaitGroup
	defer up.Wait() // last: it ends when both connections are closed
	defer client.Close()
	server, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer server.Close()
	up.Go(func() {
		defer server.Close()
		_, _ = io.Copy(server, client)
	})
	answer := make([]byte, 64<<10)
	for {
		n, err := server.Read(answer)
		if err != nil {
			return
		}
		if c.armed.CompareAndSwap(true, false) {
			return // the server has done it, and nobody will hear
		}
		if _, err := client.Write(answer[:n]); err != nil {
			return
		}
	}
}

func TestALostAnswerIsAmbiguousAndItsRetryIsRecognised(t *testing.T) {
	db := migrated.Fresh(t, pgtest.ICU)
	u, err := url.Parse(db.Direct)
	if err != nil {
		t.Fatal(err)
	}
	c := newCutter(t, u.Host)
	u.Host = c.listener.Addr().String()
	s := open(t, pgtest.Database{DSN: u.String(), Direct: u.String()}).Store()
	if _, err := spi.Append(t.Context(), s, spi.AppendRequest{Execution: "e", Events: noted(1)}); err != nil {
		t.Fatal(err)
	}
	for n, single := range []bool{true, false} {
		send := func(req spi.AppendRequest) (spi.AppendResponse, error) {
			if single {
				return spi.Append(t.Context(), s, req)
			}
			res, err := spi.AppendBatch(t.Context(), s, spi.AppendBatchRequest{Appends: []spi.AppendRequest{req}})
			if err != nil {
				return spi.AppendResponse{}, err
			}
			return res.Results[0].AppendResponse, res.Results[0].Err
		}
		// Everything is prepared once, so that the next answer is the transaction's.
		if _, err := send(spi.AppendRequest{Execution: spi.ExecutionID(fmt.Sprint("other-", n)), Events: noted(2)}); err != nil {
			t.Fatal(err)
		}
		req := spi.AppendRequest{Execution: "e", ExpectedHead: int64(1 + 2*n), Events: noted(2)}
		c.armed.Store(true)
		_, err := send(req)
		if ambiguous := want[*spi.AmbiguousError](t, err); ambiguous.Execution != "e" || ambiguous.Cause == nil {
			t.Errorf("the error is %+v", ambiguous)
		}
		res, err := send(req)
		if err != nil || !res.Duplicate || res.FirstSeq != req.ExpectedHead+1 || res.Head != req.ExpectedHead+2 {
			t.Errorf("the retry answers %+v (%v)", res, err)
		}
	}
}

func TestEverythingAcknowledgedSurvivesAKilledServer(t *testing.T) {
	cluster := pgtest.Private(t, pgtest.Options{Durable: true})
	db := cluster.Copy(t, pgtest.ICU, migrated)
	s := open(t, db).Store()
	const writers = 6
	var heads [writers]atomic.Int64 // acknowledged
	var underWay, done sync.WaitGroup
	underWay.Add(writers)
	stop := make(chan struct{})
	for w := range writers {
		done.Go(func() {
			id := spi.ExecutionID(fmt.Sprint("e-", w))
			for n := int64(0); ; {
				req := spi.AppendRequest{Execution: id, ExpectedHead: n, Events: noted(2)}
				res, err := spi.Append(t.Context(), s, req)
				for err != nil { // the same request, until it is answered
					_, ambiguous := errors.AsType[*spi.AmbiguousError](err)
					_, unavailable := errors.AsType[*spi.UnavailableError](err)
					if !ambiguous && !unavailable {
						t.Errorf("%s at %d: %v", id, n, err)
						return
					}
					res, err = spi.Append(t.Context(), s, req)
				}
				if res.FirstSeq != n+1 {
					t.Errorf("%s: the append at %d is at %d", id, n, res.FirstSeq)
					return
				}
				n += 2
				heads[w].Store(n)
				if n == 20 {
					underWay.Done()
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	underWay.Wait()
	cluster.Kill9(t)
	cluster.Restart(t)
	close(stop)
	done.Wait()
	for w := range writers {
		res, err := spi.Head(t.Context(), s, spi.HeadRequest{Execution: spi.ExecutionID(fmt.Sprint("e-", w))})
		if err != nil || res.Head != heads[w].Load() {
			t.Errorf("writer %d was told %d, and the log is at %d (%v)", w, heads[w].Load(), res.Head, err)
		}
	}
}

func TestAReadOnlyStandbyIsToldApart(t *testing.T) {
	cluster := pgtest.Private(t, pgtest.Options{})
	db := cluster.Copy(t, pgtest.ICU, migrated)
	if _, err := spi.Append(t.Context(), open(t, db).Store(), spi.AppendRequest{Execution: "e", Events: noted(1)}); err != nil {
		t.Fatal(err)
	}
	standby := cluster.Standby(t)
	standby.CatchUp(t)
	dsn := standby.DSN(db.Name)
	s := open(t, pgtest.Database{DSN: dsn, Direct: dsn}).Store()
	if res, err := spi.Head(t.Context(), s, spi.HeadRequest{Execution: "e"}); err != nil || res.Head != 1 {
		t.Errorf("it reads %+v (%v)", res, err)
	}
	_, err := spi.Append(t.Context(), s, spi.AppendRequest{Execution: "e", ExpectedHead: 1, Events: noted(1)})
	if want[*spi.UnavailableError](t, err); !errors.Is(err, postgres.ErrReadOnly) {
		t.Error(err)
	}
}

func TestAFullDiskIsToldApartAndChangesNothing(t *testing.T) {
	cluster := pgtest.Private(t, pgtest.Options{DiskMB: 48})
	db := cluster.Copy(t, pgtest.ICU, migrated)
	s := open(t, db).Store()
	large := noted(1)
	large[0].Payload = make([]byte, 4<<20)
	for i := range large[0].Payload {
		large[0].Payload[i] = byte(i * i >> 3) // does not compress
	}
	cluster.FillDisk(t)
	req := spi.AppendRequest{Execution: "e", Events: large}
	_, err := spi.Append(t.Context(), s, req)
	if want[*spi.UnavailableError](t, err); !errors.Is(err, postgres.ErrDiskFull) {
		t.Fatal(err)
	}
	cluster.FreeDisk(t)
	if res, err := spi.Append(t.Context(), s, req); err != nil || res.Duplicate || res.FirstSeq != 1 {
		t.Errorf("when there is space again it answers %+v (%v)", res, err)
	}
}

func TestADatabaseThatCouldLoseCommitsIsRefused(t *testing.T) {
	db := migrated.Fresh(t, pgtest.ICU)
	dsn := with(t, db.Direct, "options", "-c synchronous_commit=off")
	if _, err := postgres.Open(t.Context(), dsn); err == nil {
		t.Error("it is accepted")
	}
	d, err := postgres.Open(t.Context(), dsn, postgres.AllowAsyncCommit())
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
}

func TestADatabaseWithoutASchemaIsRefused(t *testing.T) {
	if _, err := postgres.Open(t.Context(), pgtest.Fresh(t, pgtest.ICU).DSN); err == nil || err.Error() != "postgres: the database has no schema yet: migrate it first" {
		t.Error(err)
	}
}

func TestAMalformedDSNIsRefusedWithoutItsPassword(t *testing.T) {
	_, err := postgres.Open(t.Context(), "postgres://user:hunter2@[::1/db")
	if err == nil || err.Error() != "postgres: the DSN is malformed" {
		t.Error(err)
	}
}
