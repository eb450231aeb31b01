package render

import (
	"slices"
	"strings"
	"testing"
)

func TestFileMarks(t *testing.T) {
	for src, want := range map[string][]FileMark{
		"Here:\n\n[[file: out/report.pdf]]":             {{Path: "out/report.pdf"}},
		"[[file:a_b*c.png|The *plan* of 2026]] and":     {{"a_b*c.png", "The *plan* of 2026"}},
		"- [[file: a b.txt]]\n- [[file: /abs/c.txt]]":   {{Path: "a b.txt"}, {Path: "/abs/c.txt"}},
		"one [[file: a]] two [[file: b]]":               {{Path: "a"}, {Path: "b"}},
		"`[[file: a]]`":                                 nil,
		"```\n[[file: a]]\n```":                         nil,
		"    [[file: a]]":                               nil,
		"[[file: ]]":                                    nil,
		"[[file: a":                                     nil,
		"[[file: a\nb]]":                                nil,
		"[[files: a]] [file: b] [[link]](https://x.yz)": nil,
		`if [[ -f x ]]; then`:                           nil,
	} {
		if got := FileMarks(src); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", src, got, want)
		}
	}
}

// While a text with marks grows, the marks are never visible. The name of a file appears once its mark is complete.
func TestAStreamShowsNamesForFileMarks(t *testing.T) {
	const src = "Look:\n\n[[file: out/report.pdf | The report]]\n\n- [[file: b.png]]: `[[file: code]]` and [a link](https://x.yz)\n\nDone."
	want := "Look:\n\n📎 report.pdf\n\n• 📎 b.png: [[file: code]] and a link\n\nDone."
	s := Stream{FileMarks: true}
	for _, r := range src {
		s.Append(string(r))
		shown := strings.ReplaceAll(s.Text().Text, "[[file: code", "")
		if strings.Contains(shown, "[[") && !strings.Contains(shown, "`") || strings.Contains(shown, "out/") {
			t.Errorf("it shows %q", s.Text().Text)
		}
	}
	if got := s.Text().Text; got != want {
		t.Errorf("it ends as %q, want %q", got, want)
	}
	s.Retract(s.Len() - strings.Index(src, "report.pdf"))
	if got := s.Text().Text; got != "Look:" {
		t.Errorf("taken back into a mark it shows %q", got)
	}
	if got := Markdown("[[file: a.png]]").Text; got != "[[file: a.png]]" {
		t.Errorf("where no marks are read: %q", got)
	}
}
