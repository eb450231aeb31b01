package turn

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCoalescerDue(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	opts := CoalescerOptions{MinChars: 10, MaxChars: 40, Idle: time.Second, Sentences: true, Paragraphs: true}
	const now, never = 0, -1
	for _, tc := range []struct {
		name string
		opts CoalescerOptions
		warm bool // a first piece was taken
		text string
		want time.Duration // after the last Add; never for not due
	}{
		{"nothing", opts, false, "", never},
		{"first text waits for MinChars", opts, false, "Hello", time.Second},
		{"first text is due at MinChars", opts, false, "Hello, all the world", now},
		{"later text waits", opts, true, "Hello, all the world", time.Second},
		{"later text with a sentence's end", opts, true, "Hello, all the world.", now},
		{"space behind the end", opts, true, "Hello, all the world! ", now},
		{"quotes behind the end", opts, true, "He said \"all the world.\"**", now},
		{"another script's end", opts, true, "你好，全世界的朋友们，大家好。", now},
		{"too short a sentence", opts, true, "Hello.", time.Second},
		{"a paragraph", opts, true, "Hello, all the world\n\n", now},
		{"a line is no paragraph", opts, true, "Hello, all the world\n", time.Second},
		{"a paragraph with spaces", opts, true, "Hello, all the world\n  \n", now},
		{"MaxChars", opts, true, strings.Repeat("é", 40), now},
		{"almost MaxChars", opts, true, strings.Repeat("é", 39), time.Second},
		{"no sentences asked for", CoalescerOptions{MinChars: 2, Idle: time.Minute, Paragraphs: true}, true, "Hello.", time.Minute},
		{"no paragraphs asked for", CoalescerOptions{MinChars: 2, Idle: time.Minute, Sentences: true}, true, "Hello\n\n", time.Minute},
		{"half a character", opts, true, "\xe4\xbd", never},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := NewCoalescer(tc.opts)
			if tc.warm {
				c.Add("x", start)
				c.Take()
			}
			c.Add(tc.text, start)
			at, ok := c.Due()
			if ok != (tc.want != never) || ok && !at.Equal(start.Add(tc.want)) {
				t.Errorf("due %v at %s", ok, at.Sub(start))
			}
		})
	}
}

func TestCoalescerHoldsBackHalfACharacter(t *testing.T) {
	c := NewCoalescer(CoalescerOptions{MinChars: 1})
	at := time.Now()
	c.Add("né\xe6\x97", at)
	if got := c.Take(); got != "né" {
		t.Errorf("took %q", got)
	}
	c.Add("\xa5!", at)
	if got := c.Take(); got != "日!" {
		t.Errorf("took %q", got)
	}
	c.Add("end\xf0\x9f", at)
	if got := c.TakeAll(); got != "end\xf0\x9f" {
		t.Errorf("took %q at the end", got)
	}
}

// Law: whatever is added in whatever pieces, what is taken joined is the same; no piece but the last ends
// inside a character; something whole that waits is due at Idle at the latest.
func TestCoalescerLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		c := NewCoalescer(CoalescerOptions{
			MinChars: rapid.IntRange(0, 20).Draw(t, "min"), MaxChars: rapid.IntRange(0, 50).Draw(t, "max"),
			Idle: time.Second, Sentences: rapid.Bool().Draw(t, "sentences"), Paragraphs: rapid.Bool().Draw(t, "paragraphs"),
		})
		at := time.Unix(0, 0)
		var taken strings.Builder
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), 7)).Draw(t, "n")
			at = at.Add(time.Millisecond)
			c.Add(rest[:n], at)
			rest = rest[n:]
			due, ok := c.Due()
			if ok && (due.After(at.Add(time.Second)) || due.Before(at)) {
				t.Fatalf("due at %s, added at %s", due, at)
			}
			if ok && rapid.Bool().Draw(t, "take") {
				piece := c.Take()
				if piece == "" || !utf8.ValidString(piece) {
					t.Fatalf("took %q of %q", piece, text)
				}
				taken.WriteString(piece)
				if _, ok := c.Due(); ok {
					t.Fatal("due again with nothing added")
				}
			}
		}
		taken.WriteString(c.TakeAll())
		if taken.String() != text {
			t.Fatalf("took %q of %q", taken.String(), text)
		}
	})
}

func FuzzCoalescer(f *testing.F) {
	f.Add("Hello. 日本\xe6", uint8(3))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		c, taken := NewCoalescer(CoalescerOptions{MinChars: 3, MaxChars: 9, Sentences: true}), ""
		for rest := text; rest != ""; {
			n := min(int(size)+1, len(rest))
			c.Add(rest[:n], time.Time{})
			rest = rest[n:]
			if _, ok := c.Due(); ok {
				taken += c.Take()
			}
		}
		if taken += c.TakeAll(); taken != text {
			t.Fatalf("took %q of %q", taken, text)
		}
	})
}

func BenchmarkCoalescer(b *testing.B) {
	b.ReportAllocs()
	at := time.Now()
	for b.Loop() {
		c := NewCoalescer(CoalescerOptions{MinChars: 1 << 20, Idle: time.Second, Sentences: true})
		for range 5000 {
			c.Add("twenty characters go ", at)
			c.Due()
		}
		c.TakeAll()
	}
}
