package render

import (
	"testing"

	"ductor/internal/sim/hostile"
	"ductor/lang"
)

// The work for an answer is proportional to its length, whatever an agent writes.
func TestTheWorkOverAnAnswerIsLinear(t *testing.T) { hostile.Linear(t, hostile.Markdown, readAnswer) }

func BenchmarkHostileAnswer(b *testing.B) { hostile.Benchmark(b, hostile.Markdown, readAnswer) }

func readAnswer(src string) {
	stream(src, len(src)/1024+1, 8, func(s *Stream) { s.Text() })
	s := Stream{FileMarks: true}
	s.Append(src)
	text := s.Text()
	for s.Len() > len(src)/2 {
		s.Retract(8 << 10)
		s.Text()
	}
	blocks, _ := s.Blocks(func(src string) string { return src }, Block{})
	FitBlocks(blocks, Block{})
	Lay(text)
	Split(text, MessageLimit)
	AsMessage(Shorten(text, MessageLimit))
	Slice(text, len(src)/4, len(src)/2)
	_ = checkMessage(text, len(src))
}

// The same holds for parsers of a whole answer.
func TestTheWorkOverMarksAndTablesIsLinear(t *testing.T) {
	hostile.Linear(t, hostile.Markdown, readWhole)
}

func BenchmarkHostileMarksAndTables(b *testing.B) { hostile.Benchmark(b, hostile.Markdown, readWhole) }

func readWhole(src string) {
	FileMarks(src)
	Tables(src)
}

// The same holds for the output of programs.
func TestTheWorkOverAnOutputIsLinear(t *testing.T) { hostile.Linear(t, hostile.Printed, readOutput) }

func BenchmarkHostileOutput(b *testing.B) { hostile.Benchmark(b, hostile.Printed, readOutput) }

func readOutput(src string) {
	Markdown(src)
	Split(CodeBlock("go", src), 64)
	Revealed(src)
	OneLine(src)
	LastLines(src, MessageLimit)
	_ = Cut(src, len(src)/2)
	Width(src)
	DiffText(lang.Printer{}, "x", src)
	DiffCount(src)
	ToolName(lang.Printer{}, src)
}
