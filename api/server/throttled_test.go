package server_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loomgate/loomgate/api/server"
	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

// throttled is a server whose appends are refused for a while.
func throttled(t *testing.T, after time.Duration) *server.Server {
	t.Helper()
	store := appending(t, func(context.Context, spi.AppendRequest) error {
		return &spi.ThrottledError{Limit: "events a second", RetryAfter: after}
	})
	return server.New(as(server.Caller{Store: store}), slog.New(slog.DiscardHandler))
}

func TestAThrottledCallIsToldWhenToRetryOverGRPC(t *testing.T) {
	client := pb.NewEventServiceClient(dial(t, throttled(t, 1500*time.Millisecond)))
	_, err := client.Append(t.Context(), oneEvent("e", 0))
	if status.Code(err) != codes.ResourceExhausted {
		t.Fatal(err)
	}
	for _, detail := range status.Convert(err).Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok && retry.GetRetryDelay().AsDuration() == 1500*time.Millisecond {
			return
		}
	}
	t.Errorf("it is told %v", status.Convert(err).Details())
}

func TestAThrottledCallIsToldWhenToRetryOverHTTP(t *testing.T) {
	for after, want := range map[time.Duration]string{0: "0", time.Millisecond: "1", 1500 * time.Millisecond: "2", time.Minute: "60"} {
		url := serveHTTP(t, throttled(t, after))
		body := `{"execution":"e","events":[{"id":"` + spi.NewEventID().String() + `","kind":"k"}]}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/loomgate.v1.EventService/Append", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("content-type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != want {
			t.Errorf("after %v: %s, %q", after, res.Status, res.Header.Get("Retry-After"))
		}
	}
}
