package frames

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"ductor/cli"
)

// readMessages reads all of out. It returns the messages with their end offsets, the garbage, and the final error.
func readMessages(f Framing, out io.Reader) (messages []string, ends []int64, garbage []string, err error) {
	var r *Reader
	r = NewReader(out, Options{
		Framing: f, Garbage: func(raw []byte) { garbage = append(garbage, string(raw)) },
		Lost: func(*cli.LostOutput) { messages, ends = append(messages, "lost"), append(ends, r.at) },
	})
	for {
		raw, err := r.Next()
		if err != nil {
			return messages, ends, garbage, err
		}
		messages, ends = append(messages, string(raw)), append(ends, r.at)
	}
}

func framed(s string) string { return string(ContentLength.Frame([]byte(s))) }

var framings = map[string]struct {
	framing           Framing
	out               string
	messages, garbage []string
	err               error
}{
	"lines":                      {Lines, "{1}\n{2}\r\n", []string{"{1}", "{2}"}, nil, io.EOF},
	"no newline at the end":      {Lines, "{1}\n{2}", []string{"{1}", "{2}"}, nil, io.EOF},
	"empty lines":                {Lines, "\n \n{1}\n\n", []string{"{1}"}, nil, io.EOF},
	"a line beyond the buffer":   {Lines, strings.Repeat("x", 3*readBuffer) + "\n{1}\n", []string{strings.Repeat("x", 3*readBuffer), "{1}"}, nil, io.EOF},
	"frames":                     {ContentLength, framed("{1}") + framed("{22}"), []string{"{1}", "{22}"}, nil, io.EOF},
	"another header":             {ContentLength, "Content-Type: x; charset=utf-8\r\ncontent-LENGTH:3\n\n{1}", []string{"{1}"}, nil, io.EOF},
	"an empty frame":             {ContentLength, framed("") + framed("{1}"), []string{"{1}"}, nil, io.EOF},
	"noise before a header":      {ContentLength, "Welcome!\r\n\r\n" + framed("{1}"), []string{"{1}"}, []string{"Welcome!"}, io.EOF},
	"noise in line with one":     {ContentLength, "Welcome!" + framed("{1}"), []string{"{1}"}, []string{"Welcome!"}, io.EOF},
	"lengths that are none":      {ContentLength, "Content-Length: x\r\nContent-Length: -1\r\n" + framed("{1}"), []string{"{1}"}, []string{"Content-Length: x", "Content-Length: -1"}, io.EOF},
	"the last of two lengths":    {ContentLength, "Content-Length: 99\r\n" + framed("{1}"), []string{"{1}"}, nil, io.EOF},
	"a body beyond the buffers":  {ContentLength, framed(strings.Repeat("x", 2*keptBody)) + framed("{1}"), []string{strings.Repeat("x", 2*keptBody), "{1}"}, nil, io.EOF},
	"half a message":             {ContentLength, "Content-Length: 9\r\n\r\n{1}", nil, nil, io.ErrUnexpectedEOF},
	"half a header":              {ContentLength, "Content-Le", nil, []string{"Content-Le"}, io.EOF},
	"a header and no message":    {ContentLength, "Content-Length: 9\r\n\r\n", nil, nil, io.EOF},
	"bytes that are no text":     {ContentLength, "\xff\xc4\xb0" + framed("{1}"), []string{"{1}"}, []string{"\xff\xc4\xb0"}, io.EOF},
	"a header without its blank": {ContentLength, "Content-Length: 3\r\n{1}\r\n" + framed("{2}"), []string{"{2}"}, []string{"{1}"}, io.EOF},
}

// The messages do not depend on how the output is split into reads.
func TestFramings(t *testing.T) {
	for name, tt := range framings {
		t.Run(name, func(t *testing.T) {
			for how, out := range map[string]io.Reader{
				"whole": strings.NewReader(tt.out), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.out)),
				"error with data": iotest.DataErrReader(strings.NewReader(tt.out)),
			} {
				messages, ends, garbage, err := readMessages(tt.framing, out)
				if !slices.Equal(messages, tt.messages) || !slices.Equal(garbage, tt.garbage) || !errors.Is(err, tt.err) {
					t.Errorf("%s: %.80q, garbage %q, %v", how, messages, garbage, err)
				}
				if n := len(ends); n > 0 && len(tt.garbage) == 0 && tt.err == io.EOF && strings.TrimSpace(tt.out[ends[n-1]:]) != "" {
					t.Errorf("%s: the last message ends at %d of %d", how, ends[n-1], len(tt.out))
				}
			}
		})
	}
}

// A message that is too long is discarded except for its beginning; the following messages arrive.
func TestAMessageThatIsTooLong(t *testing.T) {
	long := strings.Repeat("x", MaxMessage+1)
	for name, framing := range map[string]Framing{"lines": Lines, "frames": ContentLength} {
		t.Run(name, func(t *testing.T) {
			out := string(framing.Frame([]byte(long))) + string(framing.Frame([]byte("{1}")))
			messages, ends, garbage, err := readMessages(framing, strings.NewReader(out))
			if len(messages) != 1 || messages[0] != "{1}" || ends[0] != int64(len(out)) || err != io.EOF {
				t.Errorf("%q at %v, %v", messages, ends, err)
			}
			if len(garbage) != 1 || garbage[0] != long[:garbageHead] {
				t.Errorf("%d pieces of garbage", len(garbage))
			}
		})
	}
}

// losing is output with a missing part: one read returns the data before it together with the loss.
type losing struct {
	text     string
	at, to   int
	told, by bool // by: the loss arrives without data
}

func (l *losing) Read(p []byte) (int, error) {
	lost := &cli.LostOutput{From: int64(l.at), To: int64(l.to)}
	switch {
	case l.told:
		n := copy(p, l.text[l.to:])
		l.to += n
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	case l.by:
		l.told = true
		return 0, lost
	}
	n := copy(p, l.text[:l.at])
	if l.by = true; len(p) > l.at { // read at once
		l.told = true
		return n, lost
	}
	return n, nil
}

// A damaged message is discarded, and reading continues with the next complete one.
func TestOutputThatIsLost(t *testing.T) {
	for name, framing := range map[string]Framing{"lines": Lines, "frames": ContentLength} {
		t.Run(name, func(t *testing.T) {
			var out string
			for i := range 6 {
				out += string(framing.Frame([]byte(`{"n":` + strconv.Itoa(i) + `}`)))
			}
			one := len(out) / 6
			for from := one; from < 2*one; from++ { // in the second message
				for to := 2 * one; to < 3*one; to++ { // up to the third
					messages, ends, garbage, err := readMessages(framing, &losing{text: out, at: from, to: to})
					if len(messages) < 4 || messages[0] != `{"n":0}` || messages[1] != "lost" || ends[1] != int64(to) || err != io.EOF {
						t.Fatalf("%d to %d: %q at %v, %v", from, to, messages, ends, err)
					}
					if last := messages[len(messages)-2:]; last[0] != `{"n":4}` || last[1] != `{"n":5}` || ends[len(ends)-1] != int64(len(out)) {
						t.Fatalf("%d to %d: %q at %v", from, to, messages, ends)
					}
					if len(garbage) > 0 {
						t.Fatalf("%d to %d: garbage %q", from, to, garbage)
					}
				}
			}
		})
	}
}

// CaughtUp is called exactly at the offset Until, however much output is available.
func TestCatchingUp(t *testing.T) {
	const out = "{1}\n{2}\n{3}\n"
	for until, want := range map[int64]string{0: "past {1} {2} {3}", 4: "{1} past {2} {3}", 6: "{1} past {2} {3}", 12: "{1} {2} {3} past", 99: "{1} {2} {3} past"} {
		for how, in := range map[string]io.Reader{"whole": strings.NewReader(out), "error with data": iotest.DataErrReader(strings.NewReader(out))} {
			var got []string
			r := NewReader(in, Options{Until: until, CaughtUp: func() { got = append(got, "past") }})
			for raw, err := r.Next(); err == nil; raw, err = r.Next() {
				got = append(got, string(raw))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("until %d, %s: %q, want %q", until, how, got, want)
			}
		}
	}
}

func fuzzFraming(f *testing.F, framing Framing) {
	for _, tt := range framings {
		if len(tt.out) < 1<<10 {
			f.Add([]byte(tt.out))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		messages, ends, garbage, _ := readMessages(framing, bytes.NewReader(raw))
		pieces, _, waste, _ := readMessages(framing, iotest.OneByteReader(bytes.NewReader(raw)))
		if !slices.Equal(messages, pieces) || !slices.Equal(garbage, waste) {
			t.Errorf("%q and %q, garbage %q and %q", messages, pieces, garbage, waste)
		}
		at := int64(0)
		for i, m := range messages {
			if ends[i] <= at || ends[i] > int64(len(raw)) || !bytes.Contains(raw[at:ends[i]], []byte(m)) {
				t.Fatalf("message %d, %q, is said to be at %d to %d", i, m, at, ends[i])
			}
			at = ends[i]
		}
	})
}

// FuzzLines and FuzzContentLength read arbitrary bytes: no panic, and the same messages at the same offsets however the
// bytes are split.
func FuzzLines(f *testing.F)         { fuzzFraming(f, Lines) }
func FuzzContentLength(f *testing.F) { fuzzFraming(f, ContentLength) }
