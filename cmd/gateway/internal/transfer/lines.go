package transfer

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Lines yields the lines of a file, plain or gzip, that hold an event; blank ones hold
// none. The first error, a [LineError], is the last thing that it yields.
func Lines(r io.Reader) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		f := openFile(r)
		for {
			text, err := f.next()
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(Line{}, err)
				return
			case len(bytes.Trim(text, " \t\r")) == 0:
				continue
			}
			line := Line{Number: f.number, Size: int(f.end - f.start), offset: f.start}
			if err := line.parse(text); err != nil {
				yield(Line{}, f.wrong(line, err))
				return
			}
			if !yield(line, nil) {
				return
			}
		}
	}
}

// A file is read line by line.
type file struct {
	in         *bufio.Reader
	err        error // why there is nothing to read
	number     int64 // of the line last read, from 1
	start, end int64 // where it is
	cut        bool  // the file ended before the line did
	long       []byte
}

// openFile finds out whether a file is compressed.
func openFile(r io.Reader) *file {
	const size = 64 << 10
	in := bufio.NewReaderSize(r, size)
	if magic, _ := in.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return &file{in: in}
	}
	plain, err := gzip.NewReader(in)
	if err != nil {
		return &file{number: 1, err: lineError(1, 0, 0, "the file is no gzip", err)}
	}
	return &file{in: bufio.NewReaderSize(plain, size)}
}

// next returns the next line without its end, which is good until the call after. At
// the end of the file the error is io.EOF.
func (f *file) next() ([]byte, error) {
	if f.err != nil {
		return nil, f.err
	}
	f.number++
	f.start, f.long = f.end, f.long[:0]
	for {
		part, err := f.in.ReadSlice('\n')
		f.end += int64(len(part))
		switch {
		case len(f.long)+len(part) > MaxLine:
			return nil, lineError(f.number, f.start, MaxLine, fmt.Sprintf("the line is longer than %d bytes", MaxLine), nil)
		case err == nil && len(f.long) == 0:
			return part[:len(part)-1], nil
		}
		f.long = append(f.long, part...)
		switch f.cut = errors.Is(err, io.EOF); {
		case err == nil:
			return f.long[:len(f.long)-1], nil
		case f.cut && len(f.long) > 0:
			return f.long, nil
		case f.cut:
			return nil, io.EOF
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, lineError(f.number, f.start, len(f.long), "the file cannot be read on: "+err.Error(), err)
		}
	}
}

// wrong returns what is wrong with the line last read.
func (f *file) wrong(line Line, err error) error {
	wrong, ok := errors.AsType[*fault](err)
	if !ok {
		return err // never: parse returns faults
	}
	if f.cut {
		wrong.rule += "; the file ends here, without the end of the line"
	}
	return lineError(line.Number, line.offset, wrong.at, wrong.rule, nil)
}

// wrong returns an error about a field of the line.
func (l *Line) wrong(f field, reason string) error {
	return lineError(l.Number, l.offset, l.fields[f].at, reason, nil)
}

func lineError(number, start int64, at int, reason string, err error) error {
	return &LineError{Line: number, Column: at + 1, Offset: start + int64(at), Reason: reason, Err: err}
}
