package transfer

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/loomgate/loomgate/spi"
)

// An idMaker makes the ids of events that come without one. It is not safe for
// concurrent use.
type idMaker struct{ buf []byte }

// make returns an id that depends on the tenant, the execution, the place in it, and all
// that the line says of the event: the same whenever the file is imported, whatever the
// spelling of the line, and another for a line that repeats an earlier one.
func (m *idMaker) make(tenant spi.TenantName, id spi.ExecutionID, ordinal int64, e *spi.Event) spi.EventID {
	m.buf = append(m.buf[:0], "loomgate import 1"...)
	m.addString(string(tenant))
	m.addString(string(id))
	m.addNumber(ordinal)
	m.addString(e.Kind)
	if e.Kernel {
		m.addNumber(1)
	} else {
		m.addNumber(0)
	}
	m.addNumber(e.Fence)
	m.addNumber(e.RecordedAt.UnixMicro())
	if m.addNumber(int64(len(e.Metadata))); len(e.Metadata) > 0 {
		for _, name := range slices.Sorted(maps.Keys(e.Metadata)) {
			m.addString(name)
			m.addString(e.Metadata[name])
		}
	}
	m.buf = append(m.buf, e.Payload...)
	sum := sha256.Sum256(m.buf)
	made := spi.EventID(sum[:16])
	made[6] = made[6]&0x0f | 0x80 // a UUID of version 8
	made[8] = made[8]&0x3f | 0x80
	return made
}

func (m *idMaker) addNumber(n int64) { m.buf = binary.AppendVarint(m.buf, n) }

func (m *idMaker) addString(s string) {
	m.addNumber(int64(len(s)))
	m.buf = append(m.buf, s...)
}
