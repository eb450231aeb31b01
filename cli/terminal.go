package cli

import (
	"regexp"
	"strings"
	"sync"
)

// terminalCodes matches the escape sequences that set colors, move the cursor, set the title and write links. It also
// matches an incomplete sequence at the end of the text. No match contains a line break.
var terminalCodes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*(?:[@-~]|$)|[\\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\|\x1b?$)|[ -/]+(?:[0-~]|$)|[0-Z\\\\^-~]|$)")
})

// WithoutCodes returns a program's output as it finally looks on a terminal, without escape sequences. If the program
// overwrote a line, such as a progress bar, only the last version remains. The number of lines stays the same.
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

// ShellLine joins words to a command line. It quotes the words for a shell.
func ShellLine(words []string) string {
	line := make([]string, len(words))
	for i, w := range words {
		if line[i] = w; !plainWord().MatchString(w) {
			line[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(line, " ")
}
