package main

import (
	"path/filepath"
	"strings"

	gonum "gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// A plot is lines over a logarithmic axis.
type plot struct {
	title, x, y string
	lines       []line
}

type line struct {
	name   string
	points []point
}

type point = plotter.XY

func (p *plot) file() string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(p.title)) + ".svg"
}

func (p *plot) save(dir string) error {
	g := gonum.New()
	g.Title.Text, g.X.Label.Text, g.Y.Label.Text = p.title, p.x, p.y
	g.X.Scale, g.X.Tick.Marker = gonum.LogScale{}, gonum.LogTicks{Prec: -1}
	g.Y.Min = 0
	g.Legend.Top, g.Legend.Left = true, true
	g.Add(plotter.NewGrid())
	var all []any
	top := 0.0
	for _, l := range p.lines {
		all = append(all, l.name, plotter.XYs(l.points))
		for _, point := range l.points {
			top = max(top, point.Y)
		}
	}
	if err := plotutil.AddLinePoints(g, all...); err != nil {
		return err
	}
	g.Y.Min, g.Y.Max = 0, top*1.35 // room for the legend
	return g.Save(7*vg.Inch, 4*vg.Inch, filepath.Join(dir, p.file()))
}
