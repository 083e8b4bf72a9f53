package api

import (
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loomgate/loomgate/spi"

	pb "github.com/loomgate/loomgate/api/loomgate/v1"
)

func invalid(field, rule string) error {
	return &spi.InvalidArgumentError{Field: field, Rule: rule}
}

// noTime is the rule that a malformed timestamp breaks.
const noTime = "is not in the years 1 to 9999"

// encodeTime leaves the zero time out.
func encodeTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func decodeTime(m *timestamppb.Timestamp) (t time.Time, ok bool) {
	if m == nil {
		return time.Time{}, true
	}
	return m.AsTime(), m.IsValid()
}

func decodeDuration(field string, m *durationpb.Duration) (time.Duration, error) {
	const most = math.MaxInt64 / int64(time.Second)
	if m == nil {
		return 0, nil
	}
	if s := m.GetSeconds(); !m.IsValid() || s <= -most || s >= most {
		return 0, invalid(field, "is no duration within 292 years")
	}
	return m.AsDuration(), nil
}

func encodeVersion(v spi.Version) *pb.Version {
	return &pb.Version{Major: int32(v.Major), Minor: int32(v.Minor)}
}

func decodeVersion(m *pb.Version) spi.Version {
	return spi.Version{Major: int(m.GetMajor()), Minor: int(m.GetMinor())}
}

// each converts a list. An empty one becomes nil.
func each[From, To any](all []From, convert func(From) To) []To {
	if len(all) == 0 {
		return nil
	}
	converted := make([]To, len(all))
	for i := range all {
		converted[i] = convert(all[i])
	}
	return converted
}

// eachOf is each for what may be malformed.
func eachOf[From, To any](all []From, convert func(From) (To, error)) ([]To, error) {
	if len(all) == 0 {
		return nil, nil
	}
	converted := make([]To, len(all))
	for i := range all {
		var err error
		if converted[i], err = convert(all[i]); err != nil {
			return nil, err
		}
	}
	return converted, nil
}

// hexAt is where the bytes of an id stand in UUID text.
var hexAt = [16]int{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34}

// decodeEventID reads UUID text; no text is no id, which Validate judges.
func decodeEventID(text string) (id spi.EventID, ok bool) {
	if text == "" {
		return spi.EventID{}, true
	}
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return spi.EventID{}, false
	}
	for i, at := range hexAt {
		high, low := hexValue[text[at]], hexValue[text[at+1]]
		if high|low > 0xf {
			return spi.EventID{}, false
		}
		id[i] = high<<4 | low
	}
	return id, true
}

// hexValue is what each hex digit counts, and 0xff for any other byte.
var hexValue = func() (table [256]byte) {
	for i := range table {
		table[i] = 0xff
	}
	for i := range byte(10) {
		table['0'+i] = i
	}
	for i := range byte(6) {
		table['a'+i], table['A'+i] = 10+i, 10+i
	}
	return table
}()
