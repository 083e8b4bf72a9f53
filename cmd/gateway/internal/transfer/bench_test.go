package transfer_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
)

// benchLog is a log of 20,000 events.
func benchLog() []byte { return sample(0, 1_000, 20_000) }

func perSecond(b *testing.B, lines int64) {
	b.ReportMetric(float64(lines)/b.Elapsed().Seconds(), "lines/s")
}

// BenchmarkLines reads a file and does nothing with it: the most that an import can do.
func BenchmarkLines(b *testing.B) {
	log, lines := benchLog(), int64(0)
	b.ReportAllocs()
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		for _, err := range transfer.Lines(bytes.NewReader(log)) {
			if lines++; err != nil {
				b.Fatal(err)
			}
		}
	}
	perSecond(b, lines)
}

func BenchmarkImport(b *testing.B) {
	log, lines := benchLog(), int64(0)
	b.ReportAllocs()
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		lines += importAll(b, inMemory(), bytes.NewReader(log)).New
	}
	perSecond(b, lines)
}

func BenchmarkImportAgain(b *testing.B) {
	log, lines, store := benchLog(), int64(0), inMemory()
	importAll(b, store, bytes.NewReader(log))
	b.ReportAllocs()
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		lines += importAll(b, store, bytes.NewReader(log)).Present
	}
	perSecond(b, lines)
}

func BenchmarkExport(b *testing.B) {
	store := inMemory()
	importAll(b, store, bytes.NewReader(benchLog()))
	for name, opts := range map[string]transfer.ExportOptions{"simple": {}, "full": {Format: transfer.Full}, "gzip": {Gzip: true}} {
		b.Run(name, func(b *testing.B) {
			lines, size := int64(0), int64(0)
			b.ReportAllocs()
			for b.Loop() {
				report := must(transfer.Export(ctx, store, io.Discard, opts))
				lines, size = lines+report.Events, report.Bytes
			}
			b.SetBytes(size)
			perSecond(b, lines)
		})
	}
}
