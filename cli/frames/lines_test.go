package frames

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ductor/cli"
)

// readEach passes on lines from the beginning, and for lines that are too long their beginning and end offset.
func readEach(r io.Reader, limit int, line func([]byte), oversized func(head []byte, end int64)) error {
	var lines *Reader
	lines = NewReader(r, Options{Limit: limit, Garbage: func(head []byte) { oversized(head, lines.At()) }})
	for {
		text, err := lines.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		line(text)
	}
}

// readAll returns all lines, and the head of each line that is too long.
func readAll(r io.Reader, limit int) (lines []string, err error) {
	err = readEach(r, limit,
		func(line []byte) { lines = append(lines, string(line)) },
		func(head []byte, _ int64) { lines = append(lines, fmt.Sprintf("<%.8s>", head)) })
	return lines, err
}

func TestReadLines(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		limit    int
		want     []string
	}{
		{"nothing", "", 0, nil},
		{"lines", "a\nbb\n\nccc\n", 0, []string{"a", "bb", "ccc"}},
		{"last line without newline", "a\nb", 0, []string{"a", "b"}},
		{"carriage returns", "a\r\n", 0, []string{"a"}},
		{"as long as may be", "1234\n", 5, []string{"1234"}},
		{"too long", "123456\nok\n", 5, []string{"<123456\n>", "ok"}},
		{"too long at the end", "ok\n123456789012", 5, []string{"ok", "<12345678>"}},
		{"two too long", "1234567\n12345678\n1\n", 5, []string{"<1234567\n>", "<12345678>", "1"}},
	} {
		for _, reader := range []struct {
			name string
			wrap func(io.Reader) io.Reader
		}{
			{"at once", func(r io.Reader) io.Reader { return r }},
			{"byte by byte", iotest.OneByteReader},
			{"data with EOF", iotest.DataErrReader},
		} {
			t.Run(tc.name+" "+reader.name, func(t *testing.T) {
				got, err := readAll(reader.wrap(strings.NewReader(tc.in)), tc.limit)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestReadLinesPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken pipe")
	got, err := readAll(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 0)
	if !errors.Is(err, broken) || !cmp.Equal(got, []string{"a"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// Law: lines joined by newlines are read unchanged, whatever their length and the size of reads.
func TestReadLinesLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 70_000).Draw(t, "limit")
		sizes := rapid.SliceOfN(rapid.IntRange(0, 140_000), 0, 4).Draw(t, "sizes")
		var in bytes.Buffer
		var want []string
		for i, size := range sizes {
			line := bytes.Repeat([]byte{byte('a' + i)}, size)
			in.Write(line)
			in.WriteByte('\n')
			switch {
			case size+1 > limit:
				want = append(want, fmt.Sprintf("<%.8s>", in.Bytes()[in.Len()-size-1:]))
			case size > 0:
				want = append(want, string(line))
			}
		}
		chunk := rapid.IntRange(1, 40_000).Draw(t, "chunk")
		got, err := readAll(&chunks{in.Bytes(), chunk}, limit)
		if err != nil || !cmp.Equal(got, want) {
			t.Fatalf("%d lines, want %d, %v", len(got), len(want), err)
		}
	})
}

// chunks returns its data a few bytes at a time.
type chunks struct {
	data []byte
	size int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.size)], c.data)
	c.data = c.data[n:]
	return n, nil
}

// endless is a single line of the given size.
type endless struct{ left int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(int64(len(p)), e.left)], manyX)
	e.left -= int64(n)
	return n, nil
}

var manyX = bytes.Repeat([]byte("x"), 1<<20)

// A line of any size costs no more memory than the limit.
func TestEndlessLineIsBounded(t *testing.T) {
	const size, limit = 96 << 20, 1 << 20
	var r *Reader
	largest, reported := 0, int64(0)
	src := &endless{size}
	r = NewReader(watched{src, func() { largest = max(largest, cap(r.body)) }}, Options{Limit: limit, Garbage: func(head []byte) {
		if reported = r.At(); len(head) != garbageHead {
			t.Errorf("%d bytes were kept", len(head))
		}
	}})
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("it was taken as a line: %v", err)
	}
	if reported != size || largest > 2*limit {
		t.Errorf("reported %d bytes, held %d", reported, largest)
	}
}

// watched calls look before each read.
type watched struct {
	io.Reader
	look func()
}

func (w watched) Read(p []byte) (int, error) {
	w.look()
	return w.Reader.Read(p)
}

func TestLargeBufferIsGivenBack(t *testing.T) {
	r := NewReader(strings.NewReader(strings.Repeat("x", 5<<20)+"\nshort\n"), Options{})
	line, err := r.Next()
	if err != nil || len(line) != 5<<20 || cap(r.body) < 5<<20 {
		t.Fatalf("%d bytes lie in %d, %v", len(line), cap(r.body), err)
	}
	line, err = r.Next()
	if err != nil || string(line) != "short" || cap(r.body) > keptBody {
		t.Errorf("%q, the buffer is still %d bytes, %v", line, cap(r.body), err)
	}
}

func FuzzReadLines(f *testing.F) {
	f.Add([]byte("a\nb\n"), uint8(3))
	f.Add([]byte("\x00\xff\n\n\n123456789"), uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, limit uint8) {
		most := int(limit) + 1
		var want, got []string
		for line := range bytes.Lines(in) {
			if len(line) > most {
				want = append(want, fmt.Sprintf("<%s>", line))
			} else if line = bytes.TrimSpace(line); len(line) > 0 {
				want = append(want, string(line))
			}
		}
		err := readEach(bytes.NewReader(in), most, func(l []byte) { got = append(got, string(l)) },
			func(head []byte, _ int64) { got = append(got, fmt.Sprintf("<%s>", head)) })
		if len(in) < garbageHead && (err != nil || !cmp.Equal(want, got)) {
			t.Fatalf("%q, want %q, %v", got, want, err)
		}
	})
}

// lossy returns data in small reads, and a loss of some bytes for each zero byte in it.
type lossy struct {
	data []byte
	size int
	at   int64
}

func (l *lossy) Read(p []byte) (int, error) {
	if len(l.data) == 0 {
		return 0, io.EOF
	}
	part := l.data[:min(len(l.data), l.size, len(p))]
	if part[0] == 0 {
		lost := &cli.LostOutput{From: l.at, To: l.at + lossSize}
		l.at, l.data = lost.To, l.data[1:]
		return 0, lost
	}
	if i := bytes.IndexByte(part, 0); i > 0 {
		part = part[:i]
	}
	n := copy(p, part)
	l.at, l.data = l.at+int64(n), l.data[n:]
	return n, nil
}

const lossSize = 1000

// linesOf is a slow reference implementation for lossy data: each line (or that it is over the limit) with its end
// offset, and each loss with its end offset.
func linesOf(data []byte, limit int) (want []string) {
	var line []byte
	torn, at := false, int64(0)
	end := func(newline int) {
		text := bytes.TrimSpace(line)
		switch {
		case torn:
		case len(line)+newline > limit:
			want = append(want, fmt.Sprint("long ", at))
		case len(text) > 0:
			want = append(want, fmt.Sprintf("%q %d", text, at))
		}
		line, torn = nil, false
	}
	for _, b := range data {
		switch b {
		case 0:
			at += lossSize
			line, torn = nil, true
			want = append(want, fmt.Sprint("lost ", at))
		case '\n':
			at++
			end(1)
		default:
			at++
			line = append(line, b)
		}
	}
	if len(line) > 0 {
		end(0)
	}
	return want
}

// A loss costs only the line that it damages, and every offset is right.
func FuzzReadLinesWithLosses(f *testing.F) {
	f.Add([]byte("a\nb\x00c\nd\n"), uint8(3), uint8(2))
	f.Add([]byte("\x00\x00\n\x00a"), uint8(1), uint8(1))
	f.Add([]byte("123456789\x001234567\n12345678\n\x00\n1234567"), uint8(4), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, limit, size uint8) {
		most := int(limit) + 1
		var got []string
		var r *Reader
		r = NewReader(&lossy{data: in, size: int(size) + 1}, Options{
			Limit:   most,
			Garbage: func([]byte) { got = append(got, fmt.Sprint("long ", r.At())) },
			Lost:    func(l *cli.LostOutput) { got = append(got, fmt.Sprint("lost ", l.To)) },
		})
		line, err := r.Next()
		for ; err == nil; line, err = r.Next() {
			got = append(got, fmt.Sprintf("%q %d", line, r.At()))
		}
		if diff := cmp.Diff(linesOf(in, most), got); err != io.EOF || diff != "" {
			t.Fatalf("%v, %s", err, diff)
		}
	})
}

func BenchmarkReadLines(b *testing.B) {
	in := bytes.Repeat([]byte(strings.Repeat("x", 200)+"\n"), 10_000)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if err := readEach(bytes.NewReader(in), 0, func([]byte) {}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
