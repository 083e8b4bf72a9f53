package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer/samplelog"
	"github.com/loomgate/loomgate/internal/throwaway"
	"github.com/loomgate/loomgate/spi"
)

// An acceptance is what is proved of a gateway that runs.
type acceptance struct {
	*throwaway.Cluster
	addr, key string // the admin's
}

// do runs a client command.
func (a *acceptance) do(ctx context.Context, args ...string) (string, error) {
	return a.Do(ctx, a.client(args...)...)
}

func (a *acceptance) client(args ...string) []string {
	return append(args, "--addr", a.addr, "--key-file", a.key)
}

// prove brings the logs in and looks at what is there then.
func (a *acceptance) prove(ctx context.Context, logs []tenantLog) error {
	for i, l := range logs {
		if err := a.importInterrupted(ctx, l, a.Servers[i%len(a.Servers)].Crash, a.Servers[i%len(a.Servers)].Recover); err != nil {
			return fmt.Errorf("%s: %w", l.tenant, err)
		}
	}
	ids := map[string][]string{}
	for _, l := range logs {
		wanted, err := fingerprints(l.path)
		if err != nil {
			return fmt.Errorf("%s: %w", l.path, err)
		}
		if ids[l.tenant], err = a.list(ctx, l.tenant, wanted); err != nil {
			return fmt.Errorf("%s: %w", l.tenant, err)
		}
		events, err := a.export(ctx, l.tenant, wanted)
		if err != nil {
			return fmt.Errorf("%s: %w", l.tenant, err)
		}
		if err := a.reimport(ctx, l.tenant); err != nil {
			return fmt.Errorf("%s: %w", l.tenant, err)
		}
		fmt.Printf("%s: %d executions in code point order, each once; %d events, each once, as they were; full export came back the same\n",
			l.tenant, len(ids[l.tenant]), events)
	}
	if err := a.isolation(ctx, ids); err != nil {
		return err
	}
	return nil
}

// importInterrupted brings a log in three times: the first is killed in the middle, while
// the second a shard crashes and comes back, and the third finds everything there.
func (a *acceptance) importInterrupted(ctx context.Context, l tenantLog, crash, recover func() error) error {
	lines, err := readLog(l.path)
	if err != nil {
		return err
	}
	half := lines[:bytes.LastIndexByte(lines[:len(lines)/2], '\n')+1]
	command := func() *exec.Cmd {
		return a.Command(ctx, a.client("import", "--tenant", l.tenant, "--window", "500", "-")...)
	}

	killed, err := start(command())
	if err != nil {
		return err
	}
	if _, err := killed.in.Write(half); err != nil {
		return fmt.Errorf("import: %w: %s", err, killed.log.String())
	}
	stored, err := a.awaitSome(ctx, l.tenant)
	if err := errors.Join(err, killed.cmd.Process.Kill()); err != nil {
		return err
	}
	_ = killed.cmd.Wait() // it was killed

	crashed, err := start(command())
	if err != nil {
		return err
	}
	if _, err := crashed.in.Write(half); err != nil {
		return fmt.Errorf("import: %w: %s", err, crashed.log.String())
	}
	if err := crash(); err != nil {
		return err
	}
	writing := make(chan error, 1)
	go func() {
		_, err := crashed.in.Write(lines[len(half):])
		writing <- errors.Join(err, crashed.in.Close())
	}()
	recovered := recover()
	if err := errors.Join(<-writing, crashed.cmd.Wait(), recovered); err != nil {
		return fmt.Errorf("import over a crash: %w: %s", err, crashed.log.String())
	}

	out, err := a.do(ctx, "import", "--tenant", l.tenant, l.path)
	if err != nil {
		return err
	}
	if !strings.Contains(out, ": 0 new, ") {
		return fmt.Errorf("an import of what is there says %q", out)
	}
	fmt.Printf("%s: import killed with %d executions there, run again over a shard killed with -9, then: %s", l.tenant, stored, out)
	return nil
}

// An importing is an import that reads what is written to in.
type importing struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	log *bytes.Buffer
}

func start(cmd *exec.Cmd) (*importing, error) {
	i := &importing{cmd: cmd, log: &bytes.Buffer{}}
	cmd.Stderr = i.log
	var err error
	if i.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return i, cmd.Start()
}

// awaitSome waits until some of the tenant's executions are there, and returns how many.
func (a *acceptance) awaitSome(ctx context.Context, tenant string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		out, err := a.do(ctx, "executions", "list", "--tenant", tenant, "-o", "json")
		if n := len(throwaway.Lines(out)); err == nil && n > 0 {
			return n, nil
		}
		if ctx.Err() != nil {
			return 0, fmt.Errorf("nothing of %s is stored: %w", tenant, err)
		}
	}
}

// list looks whether each execution is listed once, in code point order.
func (a *acceptance) list(ctx context.Context, tenant string, wanted map[spi.ExecutionID]samplelog.Fingerprint) ([]string, error) {
	out, err := a.do(ctx, "executions", "list", "--tenant", tenant, "-o", "json")
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, line := range throwaway.Lines(out) {
		var row struct{ ID string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			return nil, err
		}
		if n := len(ids); n > 0 && row.ID <= ids[n-1] {
			return nil, fmt.Errorf("%q is listed after %q", row.ID, ids[n-1])
		}
		if _, ok := wanted[spi.ExecutionID(row.ID)]; !ok {
			return nil, fmt.Errorf("%q is listed, and not in the log", row.ID)
		}
		ids = append(ids, row.ID)
	}
	if len(ids) != len(wanted) {
		return nil, fmt.Errorf("%d executions are listed, not %d", len(ids), len(wanted))
	}
	return ids, nil
}

// export looks whether what comes out is what went in.
func (a *acceptance) export(ctx context.Context, tenant string, wanted map[spi.ExecutionID]samplelog.Fingerprint) (events int64, err error) {
	path := a.Path(tenant + ".export.ndjson.gz")
	if _, err := a.do(ctx, "export", "--tenant", tenant, path); err != nil {
		return 0, err
	}
	got, err := fingerprints(path)
	if err != nil {
		return 0, err
	}
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		if got[id] != wanted[id] {
			return 0, fmt.Errorf("execution %q came out with %d events, went in with %d, or they differ", id, got[id].Events, wanted[id].Events)
		}
		events += got[id].Events
	}
	if len(got) != len(wanted) {
		return 0, fmt.Errorf("%d executions came out, %d went in", len(got), len(wanted))
	}
	return events, nil
}

// reimport looks whether a full export comes back in as it was: as another tenant's.
func (a *acceptance) reimport(ctx context.Context, tenant string) error {
	first, second, copied := a.Path("full.ndjson"), a.Path("again.ndjson"), tenant+"-again"
	if _, err := a.do(ctx, "export", "--tenant", tenant, "--format", "full", first); err != nil {
		return err
	}
	if _, err := a.do(ctx, "import", "--tenant", copied, first); err != nil {
		return err
	}
	if _, err := a.do(ctx, "export", "--tenant", copied, "--format", "full", second); err != nil {
		return err
	}
	before, err := os.ReadFile(first)
	if err != nil {
		return err
	}
	after, err := os.ReadFile(second)
	if err == nil && !bytes.Equal(before, after) {
		err = errors.New("a full export that was imported is exported otherwise")
	}
	return err
}

// isolation looks whether a tenant's key reaches that tenant, and no other.
func (a *acceptance) isolation(ctx context.Context, ids map[string][]string) error {
	tenants := slices.Sorted(maps.Keys(ids))
	for _, tenant := range tenants {
		out, err := a.do(ctx, "apikeys", "create", "--tenant", tenant, "--scopes", "read")
		if err != nil {
			return err
		}
		file := a.Path("tenant.key")
		if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
			return err
		}
		own := acceptance{a.Cluster, a.addr, file}
		out, err = own.do(ctx, "executions", "list", "-o", "json")
		if n := len(throwaway.Lines(out)); err != nil || n != len(ids[tenant]) {
			return fmt.Errorf("the key of %s lists %d executions, not %d: %w", tenant, n, len(ids[tenant]), err)
		}
		for _, other := range append(slices.Clone(tenants), "no-such-tenant") {
			if other == tenant {
				continue
			}
			if out, err := own.do(ctx, "executions", "list", "--tenant", other); err == nil || strings.TrimSpace(out) != "" {
				return fmt.Errorf("the key of %s reads %s", tenant, other)
			}
		}
	}
	fmt.Printf("%d tenants: each key lists its own tenant's executions, and nothing of another\n", len(tenants))
	return nil
}

// outlive looks at the databases when the gateway is gone.
func (a *acceptance) outlive(ctx context.Context) error {
	out, err := a.Do(ctx, "verify", "-c", a.Config)
	if err != nil {
		return fmt.Errorf("%w%s", err, out)
	}
	lines := throwaway.Lines(out)
	fmt.Println("verify:", lines[len(lines)-1])
	out, err = a.Do(ctx, "check", "-c", a.Config)
	if err != nil {
		return fmt.Errorf("%w%s", err, out)
	}
	return nil
}

// readLog returns a log's lines, also of one that is compressed.
func readLog(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return raw, err
	}
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(zip)
}

func fingerprints(path string) (map[spi.ExecutionID]samplelog.Fingerprint, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return samplelog.Fingerprints(f)
}
