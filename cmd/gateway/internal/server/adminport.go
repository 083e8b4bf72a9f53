package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// adminPort makes what operators look at; nil where there is none.
func (s *server) adminPort() *http.Server {
	if s.Config.Admin.Listen == "" {
		return nil
	}
	mux := http.NewServeMux()
	s.healthOn(mux)
	mux.Handle("GET /metrics", s.telemetry.Metrics())
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
}

// healthOn answers whoever asks whether the process runs, and whether it serves.
func (s *server) healthOn(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
}

// serveAdmin opens the admin port, if there is one. It is there until everything else
// has ended, so that a drain can be watched.
func (s *server) serveAdmin() (net.Addr, error) {
	s.admin = s.adminPort()
	if s.admin == nil {
		return nil, nil
	}
	l, err := net.Listen("tcp", s.Config.Admin.Listen)
	if err != nil {
		return nil, err
	}
	s.running.Go(func() {
		if err := s.admin.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.Log.Error("the admin port has failed", "error", err)
		}
	})
	return l.Addr(), nil
}

// stopTelemetry sends the spans that are left.
func (s *server) stopTelemetry() {
	if s.telemetry == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := s.telemetry.Shutdown(ctx); err != nil {
		s.Log.Warn("not all spans were sent", "error", err)
	}
}

// flushTime is how long a collector that does not answer keeps a process from ending.
const flushTime = 5 * time.Second
