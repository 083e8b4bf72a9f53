package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/loomgate/loomgate/cmd/gateway/internal/auth"
	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
)

// An identity is what finds out who calls. It can be replaced while calls are made.
type identity struct {
	chain atomic.Pointer[auth.Chain]

	stop    context.CancelFunc // of what keeps the providers' keys fresh; nil: it does not run
	running sync.WaitGroup
}

// Authenticate implements [auth.Authenticator].
func (i *identity) Authenticate(ctx context.Context, brought auth.Credentials) (auth.Identity, error) {
	return i.chain.Load().Authenticate(ctx, brought)
}

// newChain returns what authenticates by the kinds of credentials that are configured.
func (s *server) newChain(cfg config.Identity) (chain *auth.Chain, tokens *auth.Tokens, err error) {
	chain = &auth.Chain{APIKeys: auth.APIKeys(s.records)}
	options := auth.Options{Log: s.Log}
	if len(cfg.Providers) > 0 {
		if tokens, err = auth.NewTokens(s.records, cfg.Providers, options); err != nil {
			return nil, nil, err
		}
		chain.Tokens = tokens
	}
	if len(cfg.Certificates) > 0 {
		chain.Certificates = auth.Certificates(s.records, cfg.Certificates, options)
	}
	return chain, tokens, nil
}

// use goes on with another chain, and keeps the keys of its providers fresh until ctx
// ends. It is called by one goroutine at a time.
func (i *identity) use(ctx context.Context, chain *auth.Chain, tokens *auth.Tokens) {
	i.chain.Store(chain)
	if i.stop != nil {
		i.stop()
	}
	ctx, i.stop = context.WithCancel(ctx)
	if tokens != nil {
		i.running.Go(func() { tokens.Run(ctx) })
	}
}

// close ends what use has begun.
func (i *identity) close() {
	if i.stop != nil {
		i.stop()
	}
	i.running.Wait()
}

// verified returns the client's certificate of a connection, if it brought one: one that
// does not hold ends the handshake.
func verified(state *tls.ConnectionState) *x509.Certificate {
	if state == nil || len(state.VerifiedChains) == 0 {
		return nil
	}
	return state.VerifiedChains[0][0]
}

type certificateKey struct{}

// withCertificate lets calls over HTTP know the client's certificate.
func withCertificate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if certificate := verified(r.TLS); certificate != nil {
			r = r.WithContext(context.WithValue(r.Context(), certificateKey{}, certificate))
		}
		next.ServeHTTP(w, r)
	})
}

func certificateOf(ctx context.Context) *x509.Certificate {
	certificate, _ := ctx.Value(certificateKey{}).(*x509.Certificate)
	return certificate
}
