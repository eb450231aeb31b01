package scenario

import (
	"slices"
	"strings"
	"sync"

	"ductor/lang"
)

// Button identifies a button by the key of its text in package lang, for example approval.allow-once.
type Button string

// Buttons that steps can contain.
const (
	AllowOnce    Button = "approval.allow-once"
	AllowSession Button = "approval.allow-session"
	AllowRule    Button = "approval.allow-rule"
	Deny         Button = "approval.deny"
	StopTurn     Button = "bot.stop"
	Steer        Button = "bot.steer"
	Interrupt    Button = "bot.interrupt"
	CancelQueued Button = "common.cancel"
	RunAgain     Button = "bot.run-again"
	ShowAgain    Button = "bot.show-again"
	StartOver    Button = "bot.start-over"
	StartFresh   Button = "bot.start-fresh"
	Undo         Button = "changes.undo"
	Redo         Button = "changes.redo"
	AddJob       Button = "cron.add"
)

func (Button) values() []string {
	return []string{
		string(AllowOnce), string(AllowSession), string(AllowRule), string(Deny), string(StopTurn), string(Steer),
		string(Interrupt),
		string(CancelQueued), string(RunAgain), string(ShowAgain), string(StartOver), string(StartFresh), string(Undo),
		string(Redo), string(AddJob),
	}
}

// labels caches the texts of each button in all languages. Each text ends before its first placeholder. Keys have the
// type Button, values the type []label.
var labels sync.Map

type label struct {
	text   string
	prefix bool
}

// Is reports whether text is the text of the button in one of the languages.
func (b Button) Is(text string) bool {
	found, known := labels.Load(b)
	if !known {
		var all []label
		for _, l := range lang.Languages() {
			before, _, places := strings.Cut(l.Printer().Text(lang.Key(b)), "%")
			all = append(all, label{before, places})
		}
		found, _ = labels.LoadOrStore(b, all)
	}
	return slices.ContainsFunc(found.([]label), func(l label) bool {
		return text == l.text || l.prefix && strings.HasPrefix(text, l.text)
	})
}
