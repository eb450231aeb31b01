package turn

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

// readEach is readLines from the beginning, without offsets; oversized may be nil.
func readEach(r io.Reader, limit int, line func([]byte), oversized func(head []byte, size int64)) error {
	tell := lineSink{line: func(l []byte, _ int64) { line(l) }}
	if oversized != nil {
		tell.oversized = func(head []byte, size, _ int64) { oversized(head, size) }
	}
	return readLines(r, limit, 0, tell)
}

// readAll collects what readLines hands out; an oversized line is written as head and size.
func readAll(r io.Reader, limit int) (lines []string, err error) {
	err = readEach(r, limit,
		func(line []byte) { lines = append(lines, string(line)) },
		func(head []byte, size int64) { lines = append(lines, fmt.Sprintf("<%d: %.8s>", size, head)) })
	return lines, err
}

func TestReadLines(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		limit    int
		want     []string
	}{
		{"nothing", "", 0, nil},
		{"lines", "a\nbb\n\nccc\n", 0, []string{"a", "bb", "", "ccc"}},
		{"last line without newline", "a\nb", 0, []string{"a", "b"}},
		{"carriage returns are the reader's business", "a\r\n", 0, []string{"a\r"}},
		{"as long as may be", "12345\n", 5, []string{"12345"}},
		{"too long", "123456\nok\n", 5, []string{"<6: 123456>", "ok"}},
		{"too long at the end", "ok\n123456789012", 5, []string{"ok", "<12: 12345678>"}},
		{"two too long", "1234567\n12345678\n1\n", 5, []string{"<7: 1234567>", "<8: 12345678>", "1"}},
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
	if !errors.Is(err, broken) || !cmp.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestReadLinesWithoutOversized(t *testing.T) {
	var got []string
	err := readEach(strings.NewReader("123456\nok\n"), 5, func(l []byte) { got = append(got, string(l)) }, nil)
	if err != nil || !cmp.Equal(got, []string{"ok"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// Law: lines joined by newlines come out as they went in, whatever their length and the size of reads.
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
			if size > limit {
				want = append(want, fmt.Sprintf("<%d: %.8s>", size, line))
			} else {
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

// chunks reads its data a few bytes at a time.
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

// endless is a line without end, up to its size.
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
	r := lineReader{limit: limit, buf: make([]byte, lineBuffer)}
	r.tell.line = func([]byte, int64) { t.Error("it was taken as a line") }
	var reported int64
	r.tell.oversized = func(head []byte, n, _ int64) {
		if reported = n; len(head) != oversizeHead {
			t.Errorf("%d bytes were kept", len(head))
		}
	}
	src, largest := &endless{size}, 0
	for {
		n, err := src.Read(r.buf[r.used:])
		r.take(n)
		largest = max(largest, len(r.buf))
		if err != nil {
			break
		}
	}
	r.finish()
	if reported != size || largest > 2*limit {
		t.Errorf("reported %d bytes, held %d", reported, largest)
	}
}

func TestLargeBufferIsGivenBack(t *testing.T) {
	r := lineReader{limit: MaxLine, tell: lineSink{line: func([]byte, int64) {}}, buf: make([]byte, lineBuffer)}
	feed := func(s string) {
		for len(s) > 0 {
			n := copy(r.buf[r.used:], s)
			s = s[n:]
			r.take(n)
		}
	}
	feed(strings.Repeat("x", 5<<20))
	if len(r.buf) < 5<<20 {
		t.Fatalf("the line lies in %d bytes", len(r.buf))
	}
	feed("\nshort\n")
	if len(r.buf) != lineBuffer {
		t.Errorf("the buffer is still %d bytes", len(r.buf))
	}
}

func FuzzReadLines(f *testing.F) {
	f.Add([]byte("a\nb\n"), uint8(3))
	f.Add([]byte("\x00\xff\n\n\n123456789"), uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, limit uint8) {
		max := int(limit) + 1
		var total int64
		err := readEach(bytes.NewReader(in), max, func(l []byte) {
			if len(l) > max || bytes.IndexByte(l, '\n') >= 0 {
				t.Fatalf("line %q", l)
			}
			total += int64(len(l))
		}, func(_ []byte, size int64) { total += size })
		if want := int64(len(in) - bytes.Count(in, []byte("\n"))); err != nil || total != want {
			t.Fatalf("%d bytes of %d, %v", total, want, err)
		}
	})
}

// lossy gives data in small reads, and for each zero byte in it a loss of some bytes.
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

// linesOf says slowly what readLines must tell of lossy data: each line, its size if that is over limit, and the
// offset after it; each loss and the offset after that.
func linesOf(data []byte, limit int) (want []string) {
	var line []byte
	torn, at := false, int64(0)
	end := func() {
		switch {
		case torn:
		case len(line) > limit:
			want = append(want, fmt.Sprintf("<%d> %d", len(line), at))
		default:
			want = append(want, fmt.Sprintf("%q %d", line, at))
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
			end()
		default:
			at++
			line = append(line, b)
		}
	}
	if len(line) > 0 {
		end()
	}
	return want
}

// What is lost costs the line it tears and no other, and every offset is right.
func FuzzReadLinesWithLosses(f *testing.F) {
	f.Add([]byte("a\nb\x00c\nd\n"), uint8(3), uint8(2))
	f.Add([]byte("\x00\x00\n\x00a"), uint8(1), uint8(1))
	f.Add([]byte("123456789\x001234567\n12345678\n\x00\n1234567"), uint8(4), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, limit, size uint8) {
		most := int(limit) + 1
		var got []string
		err := readLines(&lossy{data: in, size: int(size) + 1}, most, 0, lineSink{
			line:      func(l []byte, end int64) { got = append(got, fmt.Sprintf("%q %d", l, end)) },
			oversized: func(_ []byte, size, end int64) { got = append(got, fmt.Sprintf("<%d> %d", size, end)) },
			lost:      func(l *cli.LostOutput) { got = append(got, fmt.Sprint("lost ", l.To)) },
		})
		if diff := cmp.Diff(linesOf(in, most), got); err != nil || diff != "" {
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
