package side

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"ductor/cli"
	"ductor/orchestrator"
)

// MostResult limits the length, in characters, of a result that ductor sends to another chat than the one with the
// request. ductor shortens longer results.
const MostResult = 20_000

// Shortener shortens results that are too long for a chat.
type Shortener struct {
	Side   Client
	Model  orchestrator.ModelChoice // model for summaries; the zero value means no summaries
	Wait   time.Duration            // time limit for one summary
	Logger *slog.Logger
}

var summaryBlock = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)<SUMMARY>(.*?)</SUMMARY>`) })

// Shorten shortens a text that has more than maxLen characters. For a shorter text it returns false. The result is the
// last <SUMMARY> block of the text, if the text has one. Otherwise, Model writes a summary, in the environment of the
// given request. If Model fails, the result is the end of the text.
func (s Shortener) Shorten(ctx context.Context, at cli.Request, text string, maxLen int) (string, bool) {
	if utf8.RuneCountInString(text) <= maxLen {
		return text, false
	}
	if blocks := summaryBlock().FindAllStringSubmatch(text, -1); len(blocks) > 0 {
		if block := strings.TrimSpace(blocks[len(blocks)-1][1]); block != "" {
			return end(at, block, maxLen), true
		}
	}
	if s.Model.Agent != "" {
		r, err := s.Side.Ask(ctx, at, Question{
			Model: s.Model, Wait: s.Wait, TextOnly: true,
			Prompt: "Summarize this result of another agent for the user who waits for it. " +
				"Keep what was found, decided and changed, names of files and commands, and what is open. " +
				"Use the language of the result. Use no tools. Answer with the summary and nothing else.\n\n" + text,
		})
		if err == nil {
			return end(at, r.Text, maxLen), true
		}
		s.Logger.Warn("a long result is cut instead of summarized", "err", err)
	}
	return end(at, text, maxLen), true
}

// end returns the last part of a text that has more than maxLen characters.
func end(at cli.Request, text string, maxLen int) string {
	runes := []rune(text)
	if len(runes) <= maxLen {
		return text
	}
	mark := at.Lang.Printer().Text("consult.cut") + "\n"
	return mark + string(runes[len(runes)-max(maxLen-utf8.RuneCountInString(mark), 0):])
}
