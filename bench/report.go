package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// A result is one figure of a run, for programs.
type result struct {
	Name    string  `json:"name"`
	Ratio   float64 `json:"ratio"`
	Target  float64 `json:"target,omitempty"` // 0: there is none
	Better  string  `json:"better"`           // "higher" or "lower"
	Command string  `json:"command"`
}

const (
	higher = "higher"
	lower  = "lower"
)

func (r result) missed() bool {
	return r.Target != 0 && (r.Better == higher && r.Ratio < r.Target || r.Better == lower && r.Ratio > r.Target)
}

// A report is what a run prints and writes.
type report struct {
	quick   bool
	text    bytes.Buffer // markdown
	results []result
	plots   []plot
	section section
	began   time.Time
}

func newReport(quick bool) *report { return &report{quick: quick, began: time.Now()} }

// say adds text, and prints it at once.
func (r *report) say(format string, args ...any) {
	fmt.Fprintf(io.MultiWriter(&r.text, os.Stdout), format+"\n", args...)
}

func (r *report) machine(ctx context.Context) {
	r.say("# Results\n")
	cpu := "unknown"
	if raw, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(raw)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
			}
		}
	}
	commit, _ := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	r.say("%s on %s, %d processors (%s), commit %s.", runtime.Version(), runtime.GOOS, runtime.NumCPU(), cpu, strings.TrimSpace(string(commit)))
	r.say("All servers, gateways and clients share this machine. Postgres: fsync on, pools of 16, ICU default collation unless said otherwise.")
	r.say("Each figure is a median of turns taken in turn; ratios are of neighbouring turns. Times in ms or µs, as said.\n")
}

func (r *report) begin(s section) {
	r.section = s
	r.say("## %s: %s\n\n`%s`\n", strings.ToUpper(s.name[:1])+s.name[1:], s.about, r.command())
}

func (r *report) command() string {
	quick := ""
	if r.quick {
		quick = " -quick"
	}
	return "go run -C bench .  -only " + r.section.name + quick
}

// table adds a table.
func (r *report) table(header []string, rows [][]string) {
	line := func(cells []string) { r.say("| %s |", strings.Join(cells, " | ")) }
	line(header)
	r.say("|%s", strings.Repeat("---|", len(header)))
	for _, row := range rows {
		line(row)
	}
	r.say("")
}

// ratio adds a figure. A target of 0 is none.
func (r *report) ratio(name string, ratio, target float64, better string) {
	r.figure(result{name, ratio, target, better, r.command()})
}

func (r *report) figure(res result) {
	r.results = append(r.results, res)
	verdict := ""
	if res.Target != 0 {
		verdict = fmt.Sprintf(" (target %.4g: met)", res.Target)
		if res.missed() {
			verdict = fmt.Sprintf(" (target %.4g: **missed**)", res.Target)
		}
	}
	r.say("- %s: **%.3g**%s", res.Name, res.Ratio, verdict)
}

// draw adds a plot.
func (r *report) draw(p plot) {
	r.plots = append(r.plots, p)
	fmt.Fprintf(&r.text, "\n![%s](%s)\n\n", p.title, p.file())
}

func (r *report) summary(w io.Writer) {
	missed := 0
	for _, res := range r.results {
		if res.missed() {
			missed++
		}
	}
	fmt.Fprintf(w, "\n%d figures, %d targets missed, in %v\n", len(r.results), missed, time.Since(r.began).Round(time.Second))
}

// write leaves what the run found in a folder.
func (r *report) write(dir string) error {
	raw, err := json.MarshalIndent(r.results, "", "\t")
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"RESULTS.md": r.text.Bytes(), "results.json": append(raw, '\n')} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	for _, p := range r.plots {
		if err := p.save(dir); err != nil {
			return err
		}
	}
	return nil
}

// checkTargets prints which targets a run's results miss.
func checkTargets(w io.Writer, dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		return err
	}
	var results []result
	if err := json.Unmarshal(raw, &results); err != nil {
		return fmt.Errorf("results.json: %w", err)
	}
	missed := 0
	for _, res := range results {
		if res.missed() {
			missed++
			fmt.Fprintf(w, "%s: %.3g, target %.4g (%s is better): %s\n", res.Name, res.Ratio, res.Target, res.Better, res.Command)
		}
	}
	fmt.Fprintf(w, "%d of %d figures miss their target\n", missed, len(results))
	return nil
}
