package cli

import (
	"regexp"
	"strings"
	"sync"
)

// terminalCodes are the sequences that colour what a terminal shows, move its cursor, set its title and write links. One that has
// not ended where the text ends is one too. None goes over a line's end.
var terminalCodes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*(?:[@-~]|$)|[\\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\|\x1b?$)|[ -/]+(?:[0-~]|$)|[0-Z\\\\^-~]|$)")
})

// WithoutCodes returns what a program printed as a terminal shows it at last: without the sequences that colour it or move the
// cursor, and of a line that a program wrote several times, such as a progress bar, the last version. It removes no line.
func WithoutCodes(printed string) string {
	if strings.Contains(printed, "\x1b") {
		printed = terminalCodes().ReplaceAllString(printed, "")
	}
	if !strings.Contains(printed, "\r") {
		return printed
	}
	var b strings.Builder
	b.Grow(len(printed))
	for line := range strings.Lines(printed) {
		text, ended := strings.CutSuffix(line, "\n")
		text = strings.TrimRight(text, "\r")
		b.WriteString(text[strings.LastIndexByte(text, '\r')+1:])
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
