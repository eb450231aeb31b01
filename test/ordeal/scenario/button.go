package scenario

import (
	"slices"
	"strings"
	"sync"

	"ductor/lang"
)

// Button is a button, named by its key in the catalogue of texts: approval.allow-once.
type Button string

// Buttons that scenarios press by name.
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

// labels caches the labels of buttons in all languages, up to their first placeholder.
var labels sync.Map // of Button: []label

type label struct {
	text   string
	prefix bool
}

// Is reports whether a label of a keyboard is the button, in any language.
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
