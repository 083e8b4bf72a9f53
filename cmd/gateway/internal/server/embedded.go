package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loomgate/loomgate/cmd/gateway/internal/config"
	"github.com/loomgate/loomgate/cmd/gateway/internal/control"
	"github.com/loomgate/loomgate/cmd/gateway/internal/stack"
)

// DemoTenant is the tenant of a new embedded gateway.
const DemoTenant = "demo"

// AdminKeyFile returns where an embedded gateway leaves its first key.
func AdminKeyFile(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "admin.key") }

// initEmbedded makes the shards of an embedded gateway, if they are not there.
func initEmbedded(ctx context.Context, cfg *config.Config) error {
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return err
	}
	cluster, err := once(filepath.Join(cfg.DataDir, "cluster"), func() (string, error) { return "embedded-" + strings.ToLower(rand.Text()), nil })
	if err != nil {
		return err
	}
	return stack.Init(ctx, cfg, cluster)
}

// bootEmbedded makes the first tenant and the first key.
func bootEmbedded(ctx context.Context, cfg *config.Config, records *control.Records) error {
	by := control.Actor{APIKey: "embedded"}
	if err := records.CreateTenant(ctx, by, DemoTenant); err != nil {
		if _, taken := errors.AsType[*control.TakenError](err); !taken {
			return err
		}
	}
	key, err := records.Bootstrap(ctx, by)
	if err != nil || key == "" {
		return err
	}
	return os.WriteFile(AdminKeyFile(cfg), []byte(key+"\n"), 0o600)
}

// once returns what a file holds, which is made if it is not there.
func once(path string, text func() (string, error)) (string, error) {
	raw, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return strings.TrimSpace(string(raw)), err
	}
	made, err := text()
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return once(path, text) // another process was first
	}
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintln(f, made)
	return made, errors.Join(err, f.Sync(), f.Close())
}
