package telemetry

import (
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/loomgate/loomgate/decorators/profiling"
)

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
