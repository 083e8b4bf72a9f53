package untaken

import (
	"context"
	"net"
	"net/http"

	"github.com/loomgate/loomgate/decorators/limits"
)

type connKey struct{}

// ConnContext is the hook of an [http.Server] whose answers are counted.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if known, ok := c.RemoteAddr().(*addr); ok {
		return context.WithValue(ctx, connKey{}, known.conn)
	}
	return ctx
}

// Handler counts what next writes, while it is being written.
func (a *Answers) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := limits.Extend(r.Context())
		defer end()
		if c, ok := ctx.Value(connKey{}).(*conn); ok {
			w = &writer{w, a, c}
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

type writer struct {
	http.ResponseWriter
	answers *Answers
	conn    *conn
}

func (w *writer) Write(p []byte) (int, error) {
	defer w.answers.put(w.conn, int64(len(p)), func() {}).taken()
	return w.ResponseWriter.Write(p)
}

// Unwrap is for [http.ResponseController].
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
