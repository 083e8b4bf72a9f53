package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// openFiles is how many files and connections the gateway has open.
func (p *process) openFiles() int {
	p.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		p.Fatal(err)
	}
	return len(all)
}

// memory is how many bytes of memory the gateway has.
func (p *process) memory() int64 {
	p.Helper()
	text := read(p.T, fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	_, rest, _ := strings.Cut(text, "VmRSS:")
	n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		p.Fatal(err)
	}
	return n << 10
}

// A slowClient sends so much at once, and the rest byte by byte.
type slowClient struct {
	addr           string
	atOnce, byByte []byte
	await          func(io.Reader) // returns when the gateway has given it up
}

// closed waits for the end of a connection.
func closed(conn io.Reader) { _, _ = io.Copy(io.Discard, conn) }

// ended waits for the end of the call, or of its connection.
func ended(conn io.Reader) {
	framer := http2.NewFramer(nil, conn)
	for {
		frame, err := framer.ReadFrame()
		if err != nil || frame.Header().Type == http2.FrameRSTStream || frame.Header().Flags.Has(http2.FlagHeadersEndStream) && frame.Header().Type == http2.FrameHeaders {
			return
		}
	}
}

// send sends until the gateway wants no more.
func (c slowClient) send() error {
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		return err
	}
	if _, err := conn.Write(c.atOnce); err != nil {
		return err
	}
	givenUp := make(chan struct{})
	var awaiting sync.WaitGroup
	awaiting.Go(func() {
		defer close(givenUp)
		c.await(conn)
	})
	defer awaiting.Wait()
	defer conn.Close()
	for i := 0; ; i++ {
		select {
		case <-time.After(2 * time.Second): // this is slow; nobody waits for it
		case <-givenUp:
			return nil
		}
		if _, err := conn.Write([]byte{c.byByte[i%len(c.byByte)]}); err != nil {
			<-givenUp
			return nil
		}
	}
}

// halfACall is the beginning of a call over gRPC: of its message there are five bytes that
// tell how long it is.
func halfACall(t *testing.T, addr string) []byte {
	t.Helper()
	var text, headers bytes.Buffer
	text.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&text, nil)
	encoder := hpack.NewEncoder(&headers)
	for _, h := range [][2]string{
		{":method", "POST"},
		{":scheme", "http"},
		{":path", "/loomgate.v1.EventService/Append"},
		{":authority", addr},
		{"content-type", "application/grpc"},
		{"te", "trailers"},
	} {
		if err := encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		framer.WriteSettings(),
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers.Bytes(), EndHeaders: true}),
		framer.WriteData(1, false, []byte{0, 0, 0x10, 0, 0}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return text.Bytes()
}

// TestSlowClientsAreGivenUpAndCostLittleMeanwhile has 10,000 clients that send byte by byte:
// headers, bodies, what begins a connection of gRPC, and messages.
func TestSlowClientsAreGivenUpAndCostLittleMeanwhile(t *testing.T) {
	const each = 2500
	dir := t.TempDir()
	file := filepath.Join(dir, "gateway.yaml")
	write(t, file, "data_dir: data\ndeadlines: {request: 10s}\n")
	p := serve(t, filepath.Join(dir, "data", "admin.key"), "-c", file)
	works := func(when string) {
		t.Helper()
		p.until("the first key is known", func() bool { status, _ := p.appendOne("e", "1"); return status == http.StatusOK })
		if _, errOut, code := gateway(t, p.client("executions", "show", "e", "--tenant", "demo")...); code != 0 {
			t.Errorf("%s: exit code %d: %s", when, code, errOut)
		}
	}
	works("before")
	files, memory := p.openFiles(), p.memory()

	var clients sync.WaitGroup
	var givenUp atomic.Int64
	const post = "POST /loomgate.v1.EventService/Append HTTP/1.1\r\nHost: x\r\n"
	for name, c := range map[string]slowClient{
		"headers":  {p.http, []byte(post + "X-Slow: "), []byte("slow"), closed},
		"a body":   {p.http, []byte(post + "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"), []byte(" "), closed},
		"a begin":  {p.grpc, []byte(http2.ClientPreface[:3]), []byte(http2.ClientPreface[3:]), closed},
		"messages": {p.grpc, halfACall(t, p.grpc), []byte{0, 0, 1, 0, 0, 0, 0, 0, 1, 'x'}, ended}, // frames of one byte
	} {
		for range each {
			clients.Go(func() {
				if err := c.send(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				givenUp.Add(1)
			})
		}
	}
	p.until("all are there, or were", func() bool { return p.openFiles() >= files+4*each || givenUp.Load() > 0 })
	works("beside them")
	grown := (p.memory() - memory) / (4 * each << 10)
	t.Logf("each of %d slow clients costs %d KiB", 4*each, grown)
	if grown > 512 { // the race detector takes most of it
		t.Error("that is too much")
	}
	p.until("all are given up", func() bool { return givenUp.Load() == 4*each })
	clients.Wait()
	p.until("nothing is left of them", func() bool { return p.openFiles() < files+each })
	works("afterwards")
}

// TestAClientThatNeverReadsItsStreamsIsNotReadEitherAndHoldsUpNobody sends appends on many
// streams, without end, and takes no result.
func TestAClientThatNeverReadsItsStreamsIsNotReadEitherAndHoldsUpNobody(t *testing.T) {
	const streams = 32
	p := embedded(t)
	mustGateway(t, p.client("tenants", "create", "calm")...)
	calm := func() {
		t.Helper()
		if status, answer := p.post("EventService/Append", "calm", fmt.Sprintf(`{"execution":"e","expectedHead":"-1","events":[{"id":%q,"kind":"K"}]}`, newUUID())); status != http.StatusOK {
			t.Errorf("another tenant is answered %d %s", status, answer)
		}
	}
	calm()
	memory := p.memory()

	conn, err := grpc.NewClient(p.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+strings.TrimSpace(read(t, p.keyFile)), "loomgate-tenant", "demo"))
	var sending sync.WaitGroup
	defer sending.Wait()
	defer cancel()
	var sent atomic.Int64
	// Each append is refused, and its result repeats the long name.
	req := &pb.AppendStreamRequest{Append: &pb.AppendRequest{
		Execution: strings.Repeat("e", 200), ExpectedHead: 7, Events: []*pb.Event{{Id: newUUID(), Kind: "K"}},
	}}
	size := int64(proto.Size(req))
	for range streams {
		stream, err := pb.NewAppendStreamServiceClient(conn).AppendStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		sending.Go(func() {
			for stream.Send(req) == nil {
				sent.Add(1)
			}
		})
	}
	before := int64(-1)
	p.until("the gateway reads no more", func() bool {
		for range 20 {
			calm()
		}
		now := sent.Load()
		stopped := now == before && now > 0
		before = now
		return stopped
	})
	grown, each := (p.memory()-memory)>>20, sent.Load()*size/streams>>10
	t.Logf("%d KiB are sent on each of %d streams, for %d MiB", each, streams, grown)
	if each > 2<<10 || grown > 1024 { // the race detector takes most of the memory
		t.Error("that is too much")
	}
}
