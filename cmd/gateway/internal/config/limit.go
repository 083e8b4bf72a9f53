package config

import (
	"math"
	"strconv"
	"strings"
)

// A Limit is a whole number, or unlimited, which is the largest.
type Limit int64

// A ByteLimit is a number of bytes, or unlimited.
type ByteLimit int64

// Unlimited is no limit.
const (
	Unlimited     Limit     = math.MaxInt64
	unlimitedText           = "unlimited"
	unlimitedSize ByteLimit = math.MaxInt64
)

func (l Limit) String() string {
	if l == Unlimited {
		return unlimitedText
	}
	return strconv.FormatInt(int64(l), 10)
}

func (l ByteLimit) String() string {
	if l == unlimitedSize {
		return unlimitedText
	}
	return Size(l).String()
}

// ParseLimit reads what a [Limit] is written as.
func ParseLimit(text string) (Limit, bool) {
	if text == unlimitedText {
		return Unlimited, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return Limit(n), err == nil && n >= 0
}

// ParseByteLimit reads what a [ByteLimit] is written as.
func ParseByteLimit(text string) (ByteLimit, bool) {
	if text == unlimitedText {
		return unlimitedSize, true
	}
	for _, u := range units {
		if number, has := strings.CutSuffix(text, u.name); has {
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil || n < 0 || n > math.MaxInt64/int64(u.bytes) {
				return 0, false
			}
			return ByteLimit(n * int64(u.bytes)), true
		}
	}
	return 0, false
}
