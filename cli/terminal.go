package cli

import (
	"regexp"
	"strings"
	"sync"
)

// terminalCodes matches the sequences that colour a terminal's text, move its cursor, set its title and write links. It
// also matches a sequence that is cut off by the end of the text. No match crosses the end of a line.
var terminalCodes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*(?:[@-~]|$)|[\\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\|\x1b?$)|[ -/]+(?:[0-~]|$)|[0-Z\\\\^-~]|$)")
})

// WithoutCodes returns a program's output as a terminal finally shows it. It removes the sequences for colours and
// cursor movement. If the program wrote a line several times, such as a progress bar, only the last version stays. It
// removes no line.
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

var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`) })

// ShellLine quotes words for a shell.
func ShellLine(words []string) string {
	line := make([]string, len(words))
	for i, w := range words {
		if line[i] = w; !plainWord().MatchString(w) {
			line[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(line, " ")
}
