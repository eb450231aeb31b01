package scenario

import (
	"strings"

	"ductor/lang"
)

// Button is a button by its key in the catalogue of texts: approval.allow-once.
type Button string

// The buttons that scenarios press by name.
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
		string(AllowOnce), string(AllowSession), string(AllowRule), string(Deny), string(StopTurn), string(Steer), string(Interrupt),
		string(CancelQueued), string(RunAgain), string(ShowAgain), string(StartOver), string(StartFresh), string(Undo), string(Redo), string(AddJob),
	}
}

// Is reports whether a label of a keyboard is the button, in any language.
func (b Button) Is(label string) bool {
	for _, l := range lang.Languages() {
		text := l.Printer().Text(lang.Key(b))
		if label == text || strings.Contains(text, "%") && strings.HasPrefix(label, text[:strings.Index(text, "%")]) {
			return true
		}
	}
	return false
}
