package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loomgate/loomgate/internal/pgtest"
)

// A step is one command of a runbook: a line of shell, or a block of SQL.
type step struct {
	before func()   // what happens, or is done, before it; nil: nothing
	run    string   // as the page has it
	exit   int      // of a line of shell
	says   []string // that it prints
}

// An act is a runbook in the state that it is about.
type act struct {
	*testing.T
	page     string
	database string            // that SQL is for
	words    map[string]string // what the page's words stand for here
	env      []string          // of the operator's shell
	steps    []step
}

// TestEveryCommandOfARunbookRunsInTheStateThatItIsFor runs the blocks of each page as they
// are, in their order. A block that the test does not know fails it.
func TestEveryCommandOfARunbookRunsInTheStateThatItIsFor(t *testing.T) {
	acts := map[string]func(*act){
		"shard-down.md": shardDown, "migration-waits.md": migrationWaits, "key-lost.md": keyLost,
		"disk-full.md": diskFull, "gateways-disagree.md": gatewaysDisagree, "ambiguous-append.md": ambiguousAppend,
		"README.md": func(*act) {}, // it has no commands
	}
	pages, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for databases most of the time
			play := acts[name]
			if play == nil {
				t.Fatal("the test does not know the page")
			}
			a := &act{T: t, page: read(t, page), words: map[string]string{}}
			play(a)
			a.play()
		})
	}
	if len(acts) != len(pages) {
		t.Errorf("there are %d pages, and the test knows %d", len(pages), len(acts))
	}
}

// play runs the steps, which have to be the page's.
func (a *act) play() {
	a.Helper()
	var known []string
	for _, s := range a.steps {
		known = append(known, s.run)
	}
	if there := commandsOf(a.page); !slices.Equal(there, known) {
		a.Fatalf("the page has the commands\n%s\nand the test\n%s", strings.Join(there, "\n"), strings.Join(known, "\n"))
	}
	for _, s := range a.steps {
		if s.before != nil {
			s.before()
		}
		a.run(s)
		if a.Failed() {
			a.FailNow() // the next step is for the state that this one leaves
		}
	}
}

func (a *act) run(s step) {
	a.Helper()
	args, shell := strings.CutPrefix(s.run, "gateway ")
	var out string
	if shell {
		words := strings.Fields(args)
		for i, w := range words {
			if here, ok := a.words[w]; ok {
				words[i] = here
			}
		}
		stdout, stderr, code := gatewayIn(a.T, a.env, words...)
		if out = stdout + stderr; code != s.exit {
			a.Errorf("%s: exit code %d, not %d:\n%s", s.run, code, s.exit, out)
		}
	} else {
		out = a.query(s.run)
	}
	if !containsAll(out, s.says) {
		a.Errorf("%s: it does not say %q:\n%s", s.run, s.says, out)
	}
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// query runs a block of SQL, and returns its rows.
func (a *act) query(block string) (out string) {
	a.Helper()
	conn, err := pgx.Connect(a.Context(), a.database)
	if err != nil {
		a.Fatal(err)
	}
	defer conn.Close(a.Context())
	for statement := range strings.SplitSeq(block, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		rows, err := conn.Query(a.Context(), statement)
		if err != nil {
			a.Fatal(err)
		}
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				a.Fatal(err)
			}
			out += fmt.Sprintln(values...)
		}
		if err := rows.Err(); err != nil {
			a.Errorf("%s: %v", statement, err)
		}
	}
	return out
}

// commandsOf returns each line of the blocks of shell, and each block of SQL. There are no
// others.
func commandsOf(page string) (all []string) {
	language, block := "", ""
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && language == "":
			language, block = "```"+fence, ""
		case isFence && language == "```sql":
			all, language = append(all, block), ""
		case isFence:
			language = ""
		case language == "```sql":
			block += line + "\n"
		case language != "" && line != "":
			all = append(all, line) // whatever the language: the test has to know it
		}
	}
	return all
}

// seen checks that the page says what is seen.
func (a *act) seen(words ...string) {
	a.Helper()
	for _, w := range words {
		if !strings.Contains(a.page, w) {
			a.Errorf("the page does not say %q", w)
		}
	}
}

// sayingSo are words that a command prints and that the page has.
func (a *act) sayingSo(words ...string) []string {
	a.Helper()
	a.seen(words...)
	return words
}

// asOperator lets commands ask a gateway that are not told which.
func (a *act) asOperator(p *process) {
	a.env = []string{"LOOMGATE_ADDR=" + p.grpc, "LOOMGATE_KEY=" + strings.TrimSpace(read(a.T, p.keyFile))}
}

// stand makes the page's words stand for something.
func (a *act) stand(words map[string]string) { maps.Copy(a.words, words) }

// A site is two shards that keep what they are told, and a gateway with a tenant acme.
type site struct {
	*process
	config string
	dsnA   string // of shard-a's database
	onA    string // an execution of acme's on shard-a
}

// durable returns a server that `gateway check` finds nothing wrong with.
func durable(t *testing.T, opts pgtest.Options) *pgtest.Cluster {
	t.Helper()
	opts.Durable = true
	return pgtest.Private(t, opts)
}

func (a *act) site(onA, onB *pgtest.Cluster, more string) *site {
	a.Helper()
	s := &site{dsnA: onA.Fresh(a.T, pgtest.ICU).DSN}
	s.config = configOf(a.T, "shard-a "+s.dsnA, "shard-b "+onB.Fresh(a.T, pgtest.ICU).DSN)
	write(a.T, s.config, read(a.T, s.config)+more)
	if more != "" {
		write(a.T, filepath.Join(filepath.Dir(s.config), "secret"), "a secret for the keyring")
		mustGateway(a.T, "keyring", "create", "-c", s.config)
	}
	keys := filepath.Join(filepath.Dir(s.config), "admin.key")
	mustGateway(a.T, "migrate", "-c", s.config)
	write(a.T, keys, mustGateway(a.T, "init", "-c", s.config, "--cluster", "test"))
	s.process = serve(a.T, keys, "-c", s.config)
	mustGateway(a.T, s.client("tenants", "create", "acme")...)
	for i := 17; s.onA == ""; i++ {
		if id := fmt.Sprint("order-", i); strings.Contains(mustGateway(a.T, s.client("where", "acme", id)...), "shard-a") {
			s.onA = id
		}
	}
	a.asOperator(s.process)
	a.stand(map[string]string{"gateway.yaml": s.config, "order-17": s.onA})
	return s
}

// append appends an event to acme's execution on shard-a.
func (s *site) append(payload string) (status int, answer string) {
	s.Helper()
	return s.send(newUUID(), payload)
}

func (s *site) send(event, payload string) (status int, answer string) {
	s.Helper()
	return s.post("EventService/Append", "acme", fmt.Sprintf(`{"execution":%q,"expectedHead":"-1","events":[{"id":%q,"kind":"K","json":%q}]}`, s.onA, event, payload))
}

func (s *site) mustAppend(payload string) {
	s.Helper()
	if status, answer := s.append(payload); status != 200 {
		s.Fatal(status, answer)
	}
}

// remove removes a file until put puts it back.
func remove(t *testing.T, path string) (put func()) {
	t.Helper()
	if err := os.Rename(path, path+".kept"); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.Rename(path+".kept", path); err != nil {
			t.Fatal(err)
		}
	}
}
