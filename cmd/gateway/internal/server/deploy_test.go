package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

const root = "../../../../"

// An alert is one of the rules, as far as it is looked at.
type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	raw, err := os.ReadFile(root + "deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalWithOptions(raw, &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return file.Groups[0].Rules
}

// dashboard returns the expressions of the panels, by title.
func dashboard(t *testing.T) map[string][]string {
	t.Helper()
	var file struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	raw, err := os.ReadFile(root + "deploy/grafana/loomgate.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, p := range file.Panels {
		for _, target := range p.Targets {
			// What Grafana puts in.
			all[p.Title] = append(all[p.Title], strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*").Replace(target.Expr))
		}
	}
	return all
}

// labelsOf returns the labels of each series that a scrape has, by the name that a query
// gives it.
func labelsOf(families map[string]*dto.MetricFamily) map[string][]string {
	all := map[string][]string{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			var names []string
			for _, l := range m.GetLabel() {
				names = append(names, l.GetName())
			}
			if family.GetType() == dto.MetricType_HISTOGRAM {
				all[name+"_bucket"] = slices.Concat(all[name+"_bucket"], names, []string{"le"})
				all[name+"_count"] = append(all[name+"_count"], names...)
				all[name+"_sum"] = append(all[name+"_sum"], names...)
			} else {
				all[name] = append(all[name], names...)
			}
		}
	}
	return all
}

// fromPrometheus are the labels that a scrape adds.
var fromPrometheus = []string{"instance", "job"}

// wantExported checks that a query is one, and that the server exports all it asks for.
func wantExported(t *testing.T, what, query string, exported map[string][]string) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v: %s", what, err, query)
		return
	}
	known := slices.Clone(fromPrometheus)
	var grouped []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			has, ok := exported[n.Name]
			if !ok {
				t.Errorf("%s asks for %s, which is not exported", what, n.Name)
			}
			known = append(known, has...)
			for _, m := range n.LabelMatchers {
				if m.Name != model.MetricNameLabel && !slices.Contains(slices.Concat(has, fromPrometheus), m.Name) {
					t.Errorf("%s asks for a %s of %s, which has none", what, m.Name, n.Name)
				}
			}
		case *parser.AggregateExpr:
			grouped = append(grouped, n.Grouping...)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				grouped = append(grouped, n.VectorMatching.MatchingLabels...)
			}
		}
		return nil
	})
	for _, name := range grouped {
		if !slices.Contains(known, name) {
			t.Errorf("%s groups by %s, which nothing has that it asks for", what, name)
		}
	}
}

func TestTheDashboardAndTheAlertsAskForWhatIsExported(t *testing.T) {
	g := seen(t, nil, "telemetry: {tenants: [listed]}")
	events := pb.NewEventServiceClient(g.conn())
	append := func(expected int64) error {
		_, err := events.Append(g.as(), &pb.AppendRequest{Execution: "e", ExpectedHead: expected, Events: []*pb.Event{{Id: spi.NewEventID().String(), Kind: "K"}}})
		return err
	}
	if err := append(0); err != nil {
		t.Fatal(err)
	}
	if append(7) == nil { // a failed call has a label of its own
		t.Fatal("an append past the head is stored")
	}
	exported := labelsOf(g.scrape())

	rules := alerts(t)
	for _, a := range rules {
		wantExported(t, a.Alert, a.Expr, exported)
		const base = "https://github.com/loomgate/loomgate/blob/main/"
		page, ok := strings.CutPrefix(a.Annotations["runbook_url"], base+"docs/runbooks/")
		if _, err := os.Stat(filepath.Join(root, "docs/runbooks", page)); !ok || err != nil {
			t.Errorf("%s has no runbook: %v", a.Alert, err)
		}
		if a.For == "" || a.Labels["severity"] == "" || a.Annotations["summary"] == "" {
			t.Errorf("%s says too little: %+v", a.Alert, a)
		}
	}
	panels := dashboard(t)
	for title, queries := range panels {
		for _, query := range queries {
			wantExported(t, title, query, exported)
		}
	}
	if len(rules) < 5 || len(panels) < 10 {
		t.Errorf("only %d alerts and %d panels", len(rules), len(panels))
	}
}
