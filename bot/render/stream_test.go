package render

import (
	"testing"

	"ductor/internal/sim/hostile"
)

// A block that looked final no longer is if its beginning is retracted.
func TestStreamRetractsIntoTheStartOfABlock(t *testing.T) {
	for _, c := range []struct {
		first string
		back  int
		then  string
	}{
		{"- a\n\nb\n\nc", 4, "  b"},
		{"- a\n\nb\n\nc", 5, "b"},
		{"```\na\n```\n\nb\n", 2, "    b\n\nc"},
		{"a\n\nb\n\nc\n", 100, "d"},
	} {
		var s Stream
		s.Append(c.first)
		s.Text()
		s.Retract(c.back)
		s.Append(c.then)
		if got, want := notation(s.Text()), notation(Markdown(s.Source())); got != want {
			t.Errorf("%q less %d plus %q: got %q, want %q", c.first, c.back, c.then, got, want)
		}
	}
}

// However an answer is written, rendering parses at most the last block, which has a bounded size. So the work for an
// answer is proportional to its length.
func TestALookParsesABlockAtMost(t *testing.T) {
	for name, src := range hostile.Markdown(8 * maxBlock) {
		var s Stream
		for i := range 16 {
			s.Append(src[len(src)*i/16 : len(src)*(i+1)/16])
			s.Text()
			if open := s.Len() - s.last().source; open > maxBlock {
				t.Errorf("%s: a look at %d bytes parses %d", name, s.Len(), open)
			}
		}
	}
}

// Rendering an unchanged stream costs nothing, and earlier results stay unchanged.
func TestStreamKeepsWhatItReturned(t *testing.T) {
	var s Stream
	s.Append("**a**\n\n*b* c\n\n**d")
	before := s.Text()
	shown := notation(before)
	s.Append("**\n\n*e*")
	s.Text()
	s.Retract(s.Len())
	s.Append("~~other~~ *text*\n\n**x**\n\ny")
	s.Text()
	if got := notation(before); got != shown {
		t.Errorf("got %q, want %q", got, shown)
	}
	if got := s.Text(); &got.Entities[0] != &s.Text().Entities[0] {
		t.Error("the same text was rendered twice")
	}
}

// Colours and progress bars arrive in pieces, and look at each moment as in a terminal.
func TestStreamShowsWhatATerminalShows(t *testing.T) {
	source := "Out:\n```\n\x1b[32mPASS\x1b[0m 12\r\n0%\r50%\r100%\n\x1b]8;;http://x\x07link\x1b]8;;\x07\n```\nBuilt \x1b[1min\x1b[0m 3 s.\r\n"
	var s Stream
	for i := range source {
		s.Append(source[i : i+1])
		if got, want := notation(s.Text()), notation(Markdown(source[:i+1])); got != want {
			t.Fatalf("%q shows %q, want %q", source[:i+1], got, want)
		}
	}
	if got, want := s.Text().Text, "Out:\nPASS 12\n100%\nlink\nBuilt in 3 s."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
