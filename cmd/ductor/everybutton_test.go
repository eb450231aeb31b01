package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
	"ductor/internal/store"
)

// buttonRow is a row of docs/buttons.md.
type buttonRow struct{ screen, label string }

// fixed returns the constant part of a label.
func (r buttonRow) fixed() string {
	label, _, _ := strings.Cut(r.label, "%")
	return strings.TrimRight(label, " (")
}

func (r buttonRow) is(text string) bool {
	if r.label == r.fixed() {
		return text == r.label
	}
	return strings.HasPrefix(text, r.fixed())
}

func buttonRows(t *testing.T) (rows []buttonRow) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*) \\|$").FindAllStringSubmatch(
		pages(t)["buttons.md"], -1) {
		if m[1] != "tgapi" { // except the pages of a list, which any screen may have
			rows = append(rows, buttonRow{m[1], strings.ReplaceAll(m[2], `\|`, "|")})
		}
	}
	return rows
}

// presser presses the buttons of a chat.
type presser struct {
	*town
	rows    []buttonRow
	pressed map[buttonRow]bool
	tests   string // sources of the tests that press other buttons
}

// last are buttons that end a screen. The presser presses them when no others are left.
var last = []string{"Close", "✖", "‹", "🗑", "⏹"}

// alike maps the labels of buttons to the labels of buttons with the same effect, in another place.
var alike = map[string]string{
	"🌱 Start fresh": "🌱 New session with a summary", "⏰ Show the job": "‹ All jobs",
	"Keep planning, with a reason…": "Deny with reason…",
	"▶️ Without arguments":          "🗜 Compact",
}

// isTested reports whether this test pressed the button of a row, or whether another test presses it.
func (p *presser) isTested(r buttonRow) bool {
	if of := alike[r.label]; of != "" {
		r.label = of
	}
	words := strings.TrimFunc(r.fixed(), func(c rune) bool { return !unicode.IsLetter(c) })
	return p.pressed[r] || strings.Contains(p.tests, r.fixed()) || strings.Contains(p.tests, `"`+words)
}

// pressScreen opens a screen and presses its new buttons, until no new ones appear. Which buttons appear depends on the
// order of events. So if a button of the screen is left then, pressScreen also presses those again that may lead to it.
func (p *presser) pressScreen(screen string, open func()) {
	p.t.Helper()
	again := false
	for range 20 {
		after := p.newest()
		open()
		p.settle()
		if p.pressAll(screen, after, again) {
			continue
		}
		again = slices.ContainsFunc(p.rows, func(r buttonRow) bool { return r.screen == screen && !p.isTested(r) })
		if !again {
			return
		}
	}
}

func (p *presser) newest() (id telegram.MessageID) {
	for _, m := range p.chat.History() {
		id = max(id, m.ID)
	}
	return id
}

// pressAll presses the buttons of messages after one, with again also those that were pressed in an earlier call. It
// reports whether a new button of the page was among them.
func (p *presser) pressAll(screen string, after telegram.MessageID, again bool) (any bool) {
	p.t.Helper()
	seen := map[string]bool{}
	for range 40 {
		m, name, row, found := p.next(screen, after, seen, again)
		if !found {
			return any
		}
		if !p.pressOne(m, name) {
			continue // the button may have returned
		}
		seen[name] = true
		if row.label != "" && !p.pressed[row] {
			p.pressed[row], any = true, true
		}
	}
	return any
}

// next returns a button to press: first one of the page, then one that leads to others.
func (p *presser) next(screen string, after telegram.MessageID, seen map[string]bool, again bool) (
	on telegram.Message, name string, row buttonRow, found bool) {
	least := 3
	for _, m := range p.chat.View().FromBot() {
		if m.ID <= after {
			continue
		}
		for _, line := range m.Keyboard {
			for _, b := range line {
				order, of := 1, p.rowOf(screen, b.Text)
				switch {
				case seen[b.Text] && (of.label == "" || p.pressed[of]), p.pressed[of] && !again:
					continue
				case of.label == "" && strings.HasPrefix(b.Text, "✓"), strings.HasPrefix(b.Text, "⏹"):
					continue
				case of.label != "" && !p.pressed[of]:
					order = 0
				}
				if slices.ContainsFunc(last, func(begin string) bool { return strings.HasPrefix(b.Text, begin) }) {
					order = 2
				}
				if order < least {
					least, on, name, row, found = order, m, b.Text, of, true
				}
			}
		}
	}
	return on, name, row, found
}

// rowOf returns the page's row for a button. If several rows match, it prefers the one of the screen.
func (p *presser) rowOf(screen, text string) (of buttonRow) {
	for _, r := range p.rows {
		if r.is(text) && (of.label == "" || r.screen == screen) {
			of = r
		}
	}
	return of
}

// pressOne presses a button and checks that it has an effect: a text as the answer, or a change in the chat. It
// returns false if the message has other buttons by now.
func (p *presser) pressOne(m telegram.Message, name string) bool {
	p.t.Helper()
	edits := func() int { return len(p.srv.Calls(telegram.Methods("editMessageText"))) }
	before, edited := p.chatText(), edits()
	a, err := p.chat.Person().Press(p.soon(), m, name)
	if errors.Is(err, telegram.ErrNoButton) {
		return false
	}
	if err != nil {
		p.fatal(err)
	}
	p.t.Logf("pressed %q of message %d", name, m.ID)
	eventually(p.t, fmt.Sprintf("an effect of %q on %q", name, m.Text), func() bool {
		return a.Text != "" || p.chatText() != before ||
			strings.HasPrefix(name, "↻") && edits() > edited // the refreshed content may be the same
	})
	p.settle()
	return true
}

// settle waits until ductor has handled every update, and until no turn runs except those that wait for an approval.
// The next button depends on the chat's content. Without settle, it would depend on the speed of the machine.
func (p *presser) settle() {
	p.t.Helper()
	if err := p.srv.AwaitAcknowledged(p.soon()); err != nil {
		p.fatal(err)
	}
	db := p.journal()
	defer db.Close()
	eventually(p.t, "a chat that does not change", func() bool {
		updates, err := db.PendingUpdates(p.t.Context(), 0, 1)
		if err != nil {
			p.t.Fatal(err)
		}
		turns, err := db.OpenTurns(p.t.Context())
		if err != nil {
			p.t.Fatal(err)
		}
		return len(updates) == 0 && (len(turns) == 0 || p.asks(db))
	})
}

// journal opens the town's database.
func (p *presser) journal() *store.DB {
	p.t.Helper()
	db, err := store.OpenReadOnly(p.t.Context(), p.database(), store.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	return db
}

// asks reports whether an approval waits for the user.
func (p *presser) asks(db *store.DB) bool {
	p.t.Helper()
	open, err := db.OpenApprovals(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return len(open) > 0
}

// abortAsking aborts the turn that waits for an approval, if there is one.
func (p *presser) abortAsking() {
	p.t.Helper()
	db := p.journal()
	defer db.Close()
	if p.asks(db) {
		p.answer("/abort", "")
		p.settle()
	}
}

// chatText returns the whole content of the chat.
func (p *presser) chatText() string {
	var all strings.Builder
	for _, m := range p.chat.View().FromBot() {
		fmt.Fprintln(&all, m.ID, m.Text, m.Keyboard, m.Media != nil)
	}
	return all.String()
}

// A test presses every button of docs/buttons.md and checks that it has an effect. This test presses the buttons that
// screens show in any chat. The tests that it names press those that need a certain situation.
func TestEveryButtonIsPressed(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "ask" })
	p := &presser{town, buttonRows(t), map[buttonRow]bool{}, sourcesOfTests(t)}
	if len(p.rows) < 100 {
		t.Fatalf("the page has %d buttons", len(p.rows))
	}
	town.sh(
		`git init -q -b main; git config user.name Ann; git config user.email a@b; mkdir sub; echo one > sub/a.txt; git add .; git commit -qm one; echo two >> sub/a.txt`)
	town.say("%s", `[[start]] [[usage in=10 out=5 cost=0.1]] `+tableAnswer)
	town.awaitDone(1)
	p.pressScreen("tables", func() {
		sent := town.say("%s", `[[start]] `+tableAnswer)
		town.awaitMessage(func(m telegram.Message) bool { return m.ID > sent.ID && m.HasButton("🖼 Table, dark") })
	})
	p.pressScreen("changes", func() {
		town.answer("/checkpoint here", "Checkpoint saved")
		town.answer("/checkpoint list", "Tap a checkpoint")
	})
	p.pressScreen("files", func() { town.answer("/files sub", "📁") })
	p.pressScreen("usage", func() { town.answer("/usage", "by day") })
	asked := 0
	p.pressScreen("approval", func() {
		for _, m := range town.chat.View().FromBot() {
			if rule := "✅ Allow with this rule"; m.HasButton(rule) { // it was pressed before, for another rule
				p.pressOne(m, rule)
			}
		}
		p.abortAsking() // a pressed button may ask for a reason or a pattern
		asked++         // no rule of before allows this command
		town.say(`[[start]] [[ask cmd="program%d a"]] [[text "was asked"]]`, asked)
		town.awaitButton("✅ Allow once")
	})
	p.abortAsking()
	p.pressScreen("cron", func() {
		town.answer("/cron every weekday at 8:30 look", "8:30")
	})
	p.pressScreen("cron", func() { town.say("/cron"); town.await("8:30") })
	p.pressScreen("sessions", func() {
		town.answer("/new", "New session")
		town.awaitAfter(town.say(`[[start]] [[text "of a session"]]`), "of a session")
		town.answer("/sessions", "Sessions in this chat")
	})
	p.pressScreen("agent", func() { town.answer("/context", "Context of") })
	p.pressScreen("agent", func() { town.answer("/cmd", "Commands and skills of") })
	p.pressScreen("menu", func() { town.answer("/permissions", "Now: ") }) // this is the last screen, since it denies tools
	for _, r := range p.rows {
		if !p.isTested(r) {
			t.Errorf("no test presses %q of the screen %s", r.label, r.screen)
		}
	}
}

// sourcesOfTests returns the other tests that press buttons.
func sourcesOfTests(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"*_test.go", "../../bot/*_test.go", "../../bot/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(source)) {
				if name != "everybutton_test.go" && strings.Contains(line, `"`) && presses(string(source)) {
					all.WriteString(line)
				}
			}
		}
	}
	return all.String()
}

// presses reports whether a test presses buttons.
func presses(source string) bool {
	return regexp.MustCompile(`\.(press|Press|Tap)\w*\(`).MatchString(source)
}
