package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// An output prints rows as a table, or each as a JSON object on a line of its own.
type output struct {
	format string
	w      io.Writer
	table  *tabwriter.Writer
	names  []string
}

// addOutput adds the flag that chooses the form.
func addOutput(cmd *cobra.Command) {
	cmd.Flags().StringP("output", "o", "table", "table, or json: one object a line")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

// newOutput begins an output with the names of its columns, which are those of the JSON.
func newOutput(cmd *cobra.Command, names ...string) (*output, error) {
	format, err := cmd.Flags().GetString("output")
	if err != nil {
		return nil, err
	}
	o := &output{format: format, w: cmd.OutOrStdout(), names: names}
	switch format {
	case "json":
	case "table":
		o.table = tabwriter.NewWriter(o.w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(o.table, strings.ToUpper(strings.Join(names, "\t")))
	default:
		return nil, &usageError{fmt.Errorf("--output is %q, not table or json", format)}
	}
	return o, nil
}

// row prints a row: a value a column.
func (o *output) row(values ...any) error {
	if o.table != nil {
		cells := make([]string, len(values))
		for i, v := range values {
			cells[i] = cell(v)
		}
		_, err := fmt.Fprintln(o.table, strings.Join(cells, "\t"))
		return err
	}
	var line bytes.Buffer
	for i, v := range values {
		name, err := json.Marshal(strings.ReplaceAll(o.names[i], " ", "_"))
		if err != nil {
			return err
		}
		value, err := json.Marshal(v)
		if err != nil {
			return err
		}
		line.WriteByte(map[bool]byte{true: '{', false: ','}[i == 0])
		line.Write(name)
		line.WriteByte(':')
		line.Write(value)
	}
	line.WriteString("}\n")
	_, err := o.w.Write(line.Bytes())
	return err
}

// cell is a value in a table: one line, and not nothing.
func cell(v any) string {
	s := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?' // an id may hold what would move the cursor
		}
		return r
	}, fmt.Sprint(v))
	if s == "" {
		return "-"
	}
	return s
}

// end prints what is left of a table.
func (o *output) end() error {
	if o.table != nil {
		return o.table.Flush()
	}
	return nil
}
