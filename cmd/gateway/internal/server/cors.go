package server

import (
	"net/http"

	connectcors "connectrpc.com/cors"
	"github.com/rs/cors"

	"github.com/loomgate/loomgate/cmd/gateway/internal/auth"
)

// preflightSeconds is how long a browser may remember what a page may send.
const preflightSeconds = 7200

// allowOrigins lets pages of these origins call. They bring a key in a header like
// everybody: cookies and what else a browser sends by itself count for nothing.
func allowOrigins(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: connectcors.AllowedMethods(),
		AllowedHeaders: append(connectcors.AllowedHeaders(), auth.AuthorizationHeader, auth.TenantHeader, "traceparent"),
		ExposedHeaders: connectcors.ExposedHeaders(),
		MaxAge:         preflightSeconds,
	}).Handler(next)
}
