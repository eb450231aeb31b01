package render

import (
	"strings"
	"testing"

	"ductor/internal/sim/hostile"
)

const size = 100_000 // bytes of the measured texts

func BenchmarkMarkdown(b *testing.B) {
	for name, src := range hostile.Markdown(size) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				Markdown(src)
			}
		})
	}
}

// One operation is a whole answer: 5000 pieces, rendered after every 50.
func BenchmarkStream(b *testing.B) {
	for name, src := range hostile.Markdown(size) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				stream(src, 5000, 50, func(s *Stream) { s.Text() })
			}
		})
	}
}

func stream(src string, pieces, every int, look func(*Stream)) {
	var s Stream
	for i := range pieces {
		s.Append(src[len(src)*i/pieces : len(src)*(i+1)/pieces])
		if i%every == every-1 {
			look(&s)
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	for name, src := range hostile.Markdown(size) {
		text := Markdown(src)
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				Split(text, 4096)
			}
		})
	}
}

// Every shape renders, splits and streams by the laws, at a size where quadratic work would show.
func TestLargeShapesHoldTheLaws(t *testing.T) {
	for name, src := range hostile.Markdown(size / 5) {
		t.Run(name, func(t *testing.T) {
			text := Markdown(src)
			if err := check(text); err != nil {
				t.Fatal(err)
			}
			for i, p := range Split(text, 4096) {
				if err := checkMessage(p.Text, 4096); err != nil {
					t.Fatalf("part %d: %v", i, err)
				}
			}
			stream(src, 30, 10, func(s *Stream) {
				if got, want := s.Text(), Markdown(s.Source()); notation(got) != notation(want) {
					t.Fatal("the stream differs")
				}
			})
		})
	}
}
