package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
)

// reloads is what readings of the configuration need to know of one another.
type reloads struct {
	mu         sync.Mutex     // held while it is read and taken over
	last       *config.Config // as it was last taken over; nil: as at the start
	background context.Context
}

var errNoReload = errors.New("this gateway was started without a way to read its configuration again")

// reloadOnHangup reads the configuration whenever the process is told to.
func (s *server) reloadOnHangup(ctx context.Context) {
	for {
		select {
		case <-s.Hangup:
			_, _ = s.reload(ctx) // the log tells
		case <-ctx.Done():
			return
		}
	}
}

// reload reads the configuration and takes over what a running gateway can. All of it is
// looked at before any of it is used: a configuration that is refused changes nothing. A
// shard that does not answer at its new address is taken to be down.
func (s *server) reload(ctx context.Context) (changes config.Changes, err error) {
	if s.Load == nil {
		return changes, errNoReload
	}
	s.reloads.mu.Lock()
	defer s.reloads.mu.Unlock()
	defer func() {
		if err != nil {
			s.Log.Error("the configuration is refused, nothing has changed", "error", err)
		}
	}()
	next, err := s.Load()
	if err != nil {
		return changes, err
	}
	last := s.reloads.last
	if last == nil {
		last = s.Config
	}
	changes = config.Changes{Live: last.Compare(next).Live, Restart: s.Config.Compare(next).Restart}
	if err := s.takeOver(ctx, last, next, changes.Live); err != nil {
		return config.Changes{}, err
	}
	s.reloads.last = next
	s.Log.Info("the configuration was read again", "changed", changes.Live, "need a restart", changes.Restart)
	return changes, nil
}

// takeOver goes on with another configuration, as far as it is live.
func (s *server) takeOver(ctx context.Context, last, next *config.Config, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	level, err := levelOf(next)
	if err != nil {
		return err
	}
	chain, tokens, err := s.newChain(next.Identity)
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	var files *certificate
	if s.certificate != nil {
		if files, err = readCertificate(next.TLS, s.Log); err != nil {
			return err
		}
	}
	if len(next.Shards) == len(last.Shards) {
		addresses, err := s.stack.Readdress(ctx, next)
		if err != nil {
			return err
		}
		addresses.Commit()
	}
	// Nothing fails from here on.
	if s.Level != nil {
		s.Level.Set(level)
	}
	if files != nil {
		s.certificate.become(files)
	}
	s.limits.SetDefaults(next.Limits.Tenant)
	s.identity.use(s.reloads.background, chain, tokens)
	return nil
}

func levelOf(cfg *config.Config) (level slog.Level, err error) {
	return level, level.UnmarshalText([]byte(cfg.Log.Level))
}
