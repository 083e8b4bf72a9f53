package samplelog

import (
	"crypto/sha256"
	"encoding/binary"
	"io"

	"github.com/loomgate/loomgate/cmd/gateway/internal/transfer"
	"github.com/loomgate/loomgate/spi"
)

// A Fingerprint is of what one execution's lines say, in their order: kinds, times and
// payloads, byte for byte.
type Fingerprint struct {
	Events int64
	Hash   [sha256.Size]byte
}

// Fingerprints returns those of a file. Two files with equal ones say the same of each
// execution, however the lines of different ones lie between each other.
func Fingerprints(r io.Reader) (map[spi.ExecutionID]Fingerprint, error) {
	all := map[spi.ExecutionID]Fingerprint{}
	var buf []byte
	for line, err := range transfer.Lines(r) {
		if err != nil {
			return nil, err
		}
		f := all[line.Execution]
		e := &line.Event
		buf = append(buf[:0], f.Hash[:]...)
		buf = binary.AppendVarint(buf, e.RecordedAt.UnixMicro())
		buf = binary.AppendUvarint(buf, uint64(len(e.Kind)))
		buf = append(append(buf, e.Kind...), e.Payload...)
		all[line.Execution] = Fingerprint{f.Events + 1, sha256.Sum256(buf)}
	}
	return all, nil
}
