package commands

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// A progress tells how far long work is: a bar on a terminal, else a line now and then.
type progress struct {
	w    io.Writer
	what string

	mu   sync.Mutex
	bar  *progressbar.ProgressBar // nil without a terminal
	n    int64
	said time.Time
	over bool
}

// sayEvery is how far apart the lines are.
const sayEvery = 10 * time.Second

func newProgress(cmd *cobra.Command, what string) *progress {
	p := &progress{w: cmd.ErrOrStderr(), what: what, said: time.Now()}
	if f, ok := p.w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	return p
}

func (p *progress) add(n int64) {
	p.mu.Lock()
	n += p.n
	p.mu.Unlock()
	p.set(n)
}

func (p *progress) set(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n = n
	switch {
	case p.over:
	case p.bar != nil:
		_ = p.bar.Set64(n)
	case time.Since(p.said) >= sayEvery:
		p.said = time.Now()
		fmt.Fprintf(p.w, "%d %s\n", n, p.what)
	}
}

// say prints a line of its own.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintf(p.w, format+"\n", args...)
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil && !p.over {
		_ = p.bar.Finish()
	}
	p.over = true
}
