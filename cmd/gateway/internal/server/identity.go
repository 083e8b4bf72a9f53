package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"

	"github.com/loomgate/loomgate/cmd/gateway/internal/auth"
)

// authenticator returns what finds out who calls, of the kinds that are configured.
func (s *server) authenticator() (auth.Authenticator, error) {
	chain := auth.Chain{APIKeys: auth.APIKeys(s.records)}
	identity, options := s.Config.Identity, auth.Options{Log: s.Log}
	if len(identity.Providers) > 0 {
		tokens, err := auth.NewTokens(s.records, identity.Providers, options)
		if err != nil {
			return nil, err
		}
		s.tokens, chain.Tokens = tokens, tokens
	}
	if len(identity.Certificates) > 0 {
		chain.Certificates = auth.Certificates(s.records, identity.Certificates, options)
	}
	return chain, nil
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
