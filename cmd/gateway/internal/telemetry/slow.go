package telemetry

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/loomgate/loomgate/api"
	"github.com/loomgate/loomgate/decorators/profiling"
)

// Append watches an append of a stream: that is slow by itself, however long its stream
// lasts.
func (c *Calls) Append(ctx context.Context) (context.Context, func(error)) {
	stream, ok := ctx.Value(callKey{}).(*call)
	if !ok || c.slow == 0 {
		return ctx, func(error) {}
	}
	one := &call{Calls: c, ctx: ctx, started: time.Now(), method: stream.method}
	ctx = one.collectTimes()
	return ctx, func(err error) {
		code := codes.OK
		if err != nil {
			code = api.ErrorStatus(err, api.Audience{}).Code()
		}
		one.logSlow(time.Since(one.started), code)
	}
}

// logSlow gives a call that was slow its line.
func (c *call) logSlow(took time.Duration, code codes.Code) {
	if c.times == nil || took < c.slow {
		return
	}
	spent := c.times.Spent()
	layers := make([]slog.Attr, len(spent))
	for i, s := range spent {
		layers[i] = slog.Duration(s.Layer, s.Took)
	}
	c.log.LogAttrs(c.ctx, slog.LevelWarn, "a call was slow", slog.String("method", c.method), slog.String("outcome", code.String()),
		slog.Duration("took", took), slog.String("slow", slowest(spent, took)), slog.GroupAttrs("layers", layers...))
}

// slowest returns the innermost layer in which a call spent at least half of its time,
// "api" if that is none. A layer comes after those within it.
func slowest(spent []profiling.Spent, took time.Duration) string {
	for _, s := range spent {
		if s.Took >= took/2 {
			return s.Layer
		}
	}
	return "api"
}
