package main

import (
	"context"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/loomgate/loomgate/backends/remote"
	"github.com/loomgate/loomgate/internal/pgtest"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// An echo is an EventService that only answers.
type echo struct {
	pb.UnimplementedEventServiceServer
}

func (echo) Append(_ context.Context, req *pb.AppendRequest) (*pb.AppendResponse, error) {
	return &pb.AppendResponse{FirstSeq: req.GetExpectedHead() + 1, Head: req.GetExpectedHead() + 1, Incarnation: 1, Floor: 1}, nil
}

// hop compares a call to the gateway with a bare echo over gRPC, and its appends with the
// same row's insert directly and through PgBouncer.
func hop(ctx context.Context, b *bench) error {
	a := &arena{}
	defer a.close()
	addr, key, err := a.startGateway(ctx)
	if err != nil {
		return err
	}
	client, err := remote.Open(ctx, addr, remote.Options{APIKey: key, Tenant: "bench", Plaintext: true})
	if err != nil {
		return err
	}
	a.cleanup(func() { client.Close() })
	bare, err := startEcho(a)
	if err != nil {
		return err
	}
	direct, err := a.pool(ctx, pgtest.ICU, byHandSchema)
	if err != nil {
		return err
	}
	a.cleanup(direct.Close)
	pooled, err := a.behindPooler(ctx)
	if err != nil {
		return err
	}
	insert := func(name string, pool *pgxpool.Pool) side {
		return side{name, func(turn, w int) (func(context.Context, int64) error, int) {
			id := string(id(a.prefix+name, turn, w, 0))
			return func(ctx context.Context, n int64) error {
				_, err := pool.Exec(ctx, byHandSQL, id, n+1, payload, 0)
				return err
			}, 1
		}}
	}
	sides := []side{
		{"a bare echo over gRPC", func(turn, w int) (func(context.Context, int64) error, int) {
			id := string(id("echo", turn, w, 0))
			return func(ctx context.Context, n int64) error {
				_, err := bare.Append(ctx, &pb.AppendRequest{Execution: id, ExpectedHead: n, Events: []*pb.Event{{Id: spi.NewEventID().String(), Kind: "Noted", Content: &pb.Event_Payload{Payload: payload}}}})
				return err
			}, 1
		}},
		insert("an insert, directly", direct),
		insert("an insert, through PgBouncer", pooled),
		{"an append, through the gateway", func(turn, w int) (func(context.Context, int64) error, int) {
			id := id(a.prefix+"hop", turn, w, 0)
			return func(ctx context.Context, n int64) error {
				_, err := spi.Append(ctx, client.Store(), one(id, n))
				return err
			}, 1
		}},
	}
	for _, clients := range []int{1, 64} {
		a.prefix = fmt.Sprintf("c%d-", clients)
		turns, err := inTurn(ctx, b.rounds, clients, b.span, a.cpu, sides)
		if err != nil {
			return err
		}
		var rows [][]string
		for i, s := range sides {
			rows = append(rows, []string{s.name, fmt.Sprintf("%.0f", median(turns[i], perSecond)), fmt.Sprintf("%.2f", median(turns[i], p50)), fmt.Sprintf("%.2f", median(turns[i], p99))})
		}
		b.report.say("%d clients:\n", clients)
		b.report.table([]string{"", "calls/s", "p50 ms", "p99 ms"}, rows)
		for _, than := range []int{0, 1, 2} {
			b.report.ratio(fmt.Sprintf("p50 of %d clients: %s / %s", clients, sides[3].name, sides[than].name), ratio(turns[3], turns[than], p50), 0, lower)
		}
		b.report.say("")
	}
	return nil
}

func startEcho(a *arena) (pb.EventServiceClient, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	pb.RegisterEventServiceServer(server, echo{})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	a.cleanup(func() {
		server.Stop()
		<-served // it ends because it was told to
	})
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	a.cleanup(func() { connection.Close() })
	return pb.NewEventServiceClient(connection), nil
}

// behindPooler connects to a database of the same server through PgBouncer.
func (a *arena) behindPooler(ctx context.Context) (*pgxpool.Pool, error) {
	db, err := a.Database(ctx, pgtest.PgBouncer)
	if err != nil {
		return nil, err
	}
	direct, err := pgxpool.New(ctx, db.Direct)
	if err != nil {
		return nil, err
	}
	_, err = direct.Exec(ctx, byHandSchema)
	direct.Close()
	if err != nil {
		return nil, err
	}
	cfg, err := pgxpool.ParseConfig(db.DSN + "&pool_max_conns=16")
	if err != nil {
		return nil, err
	}
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // a transaction's connection is another's next time
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err == nil {
		a.cleanup(pool.Close)
	}
	return pool, err
}
