package commands

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// each calls do with every command that is ours.
func each(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, c := range cmd.Commands() {
		if c.Name() != "help" && c.Name() != "completion" {
			each(c, do)
		}
	}
}

func TestEveryCommandSaysWhatItDoesAndGivesAnExample(t *testing.T) {
	each(newRoot(), func(cmd *cobra.Command) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s is said to %q", cmd.CommandPath(), cmd.Short)
		}
		if cmd.Runnable() && !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s has no example of itself: %q", cmd.CommandPath(), cmd.Example)
		}
	})
}

// Every example is a command line that is there, with flags that are.
func TestEveryExampleParses(t *testing.T) {
	each(newRoot(), func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			_, line, ok := strings.Cut(line, "gateway ")
			if !ok {
				continue
			}
			if i := strings.IndexAny(line, "|#>"); i >= 0 {
				line = line[:i]
			}
			args := strings.Fields(line)
			found, rest, err := newRoot().Find(args)
			if err != nil || !found.Runnable() {
				t.Errorf("%q: %v", line, err)
				continue
			}
			found.InitDefaultHelpFlag()
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%q: %v", line, err)
			} else if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}
	})
}

func TestEveryFlagSaysWhatItIs(t *testing.T) {
	each(newRoot(), func(cmd *cobra.Command) {
		for _, use := range strings.Split(cmd.LocalFlags().FlagUsages(), "\n") {
			if fields := strings.Fields(use); len(fields) > 0 && len(fields) < 3 {
				t.Errorf("%s: %s", cmd.CommandPath(), use)
			}
		}
	})
}
