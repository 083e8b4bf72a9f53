// Command vulncheck runs govulncheck over the packages named by its arguments
// against the vulnerability database that tools/go.mod pins, so that a check
// needs no service and gives the same answer on every machine.
//
// It fails when code calls a vulnerable function of a module. A vulnerable
// function of the Go installation is only a warning: a new Go release mends it,
// not a change here. What is required or imported but never called is not
// reported. Test files are not looked at.
//
// The database is the module golang.org/x/vulndb, whose folder data/osv holds
// one record a vulnerability; govulncheck reads that folder as it is and
// indexes it in memory. To bring the database up to date:
//
//	go get -C tools golang.org/x/vulndb@latest
//
// Run it from the root of the repository.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/vuln/scan"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, packages []string) error {
	db, err := database(ctx)
	if err != nil {
		return err
	}
	address := url.URL{Scheme: "file", Path: filepath.ToSlash(db)}
	var out bytes.Buffer
	cmd := scan.Command(ctx, append([]string{"-format", "json", "-db", address.String()}, packages...)...)
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return err
	}
	return judge(&out, os.Stdout)
}

// database returns the folder of the pinned records, fetching it if needed.
func database(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "golang.org/x/vulndb")
	cmd.Dir = "tools"
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("fetching the database: %w", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return "", err
	}
	dir := filepath.Join(module.Dir, "data", "osv")
	records, err := filepath.Glob(filepath.Join(dir, "GO-*.json"))
	if err == nil && len(records) == 0 {
		err = errors.New("golang.org/x/vulndb holds no records in data/osv")
	}
	return dir, err
}

// A message is the part of govulncheck's JSON stream that judge reads.
type message struct {
	Finding *struct {
		OSV          string  `json:"osv"`
		FixedVersion string  `json:"fixed_version"`
		Trace        []frame `json:"trace"`
	} `json:"finding"`
}

// A frame is one step of a trace: the vulnerable function first, then its
// callers. A finding that is only required or imported names no function.
type frame struct {
	Module   string `json:"module"`
	Version  string `json:"version"`
	Package  string `json:"package"`
	Receiver string `json:"receiver"`
	Function string `json:"function"`
}

// judge reads a govulncheck stream, writes one line for each vulnerability that
// is called, and returns an error if one is a module's.
func judge(stream io.Reader, report io.Writer) error {
	called := map[string]string{} // verdict and vulnerability, to its first trace in order of text
	failed := 0
	for dec := json.NewDecoder(stream); ; {
		var m message
		if err := dec.Decode(&m); err == io.EOF {
			break
		} else if err != nil {
			return fmt.Errorf("reading the findings: %w", err)
		}
		if m.Finding == nil || len(m.Finding.Trace) == 0 || m.Finding.Trace[0].Function == "" {
			continue
		}
		f, verdict := m.Finding.Trace[0], "FAIL"
		if f.Module == "stdlib" || f.Module == "toolchain" {
			verdict = "warning"
		}
		trace := fmt.Sprintf("%s calls %s of %s@%s", caller(m.Finding.Trace), name(f), f.Module, f.Version)
		if m.Finding.FixedVersion != "" {
			trace += ", fixed in " + m.Finding.FixedVersion
		}
		key := verdict + ": " + m.Finding.OSV
		old, seen := called[key]
		if !seen && verdict == "FAIL" {
			failed++
		}
		if !seen || trace < old {
			called[key] = trace
		}
	}
	for _, key := range slices.Sorted(maps.Keys(called)) {
		fmt.Fprintf(report, "%s: %s\n", key, called[key])
	}
	if failed > 0 {
		return fmt.Errorf("calls to vulnerable modules: %d", failed)
	}
	return nil
}

// caller names the nearest caller outside the vulnerable module.
func caller(trace []frame) string {
	for _, f := range trace {
		if f.Module != trace[0].Module {
			return name(f)
		}
	}
	return name(trace[len(trace)-1])
}

func name(f frame) string {
	if f.Receiver != "" {
		return f.Package + "." + f.Receiver + "." + f.Function
	}
	return f.Package + "." + f.Function
}
