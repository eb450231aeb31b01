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
	"time"
	"unicode"

	"ductor/internal/config"
	"ductor/internal/sim/telegram"
)

// buttonRow is a row of docs/buttons.md.
type buttonRow struct{ screen, label string }

// fixed is what of a label does not depend on what it is about.
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
		if m[1] != "tgapi" { // the pages of a list, which any screen may have
			rows = append(rows, buttonRow{m[1], strings.ReplaceAll(m[2], `\|`, "|")})
		}
	}
	return rows
}

// presser presses each button of a chat that it did not press before.
type presser struct {
	*town
	rows    []buttonRow
	pressed map[buttonRow]bool
}

// last are the buttons after which a message has no others: they are pressed when nothing else is left.
var last = []string{"Close", "✖", "‹", "🗑", "⏹"}

// scene opens screens, as often as that leads to buttons that were not pressed, and presses those.
func (p *presser) scene(screen string, open func()) {
	p.t.Helper()
	for range 8 {
		after := p.newest()
		open()
		if !p.pressAll(screen, after) {
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

// pressAll presses what messages after one have. It reports whether a button of the page was among them.
func (p *presser) pressAll(screen string, after telegram.MessageID) (any bool) {
	p.t.Helper()
	seen := map[string]bool{}
	for range 40 {
		m, name, row, found := p.next(screen, after, seen)
		if !found {
			return any
		}
		if !p.pressOne(m, name) {
			continue // it may be there again
		}
		seen[name] = true
		if row.label != "" {
			p.pressed[row], any = true, true
		}
	}
	return any
}

// next is a button to press: one of the page, then one that leads on.
func (p *presser) next(screen string, after telegram.MessageID, seen map[string]bool) (on telegram.Message, name string,
	row buttonRow, found bool) {
	least := 3
	for _, m := range p.chat.View().FromBot() {
		if m.ID <= after {
			continue
		}
		for _, line := range m.Keyboard {
			for _, b := range line {
				order, of := 1, p.rowOf(screen, b.Text)
				switch {
				case seen[b.Text] && of.label == "", p.pressed[of]:
					continue
				case of.label == "" && strings.HasPrefix(b.Text, "✓"), strings.HasPrefix(b.Text, "⏹"):
					continue
				case of.label != "":
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

// rowOf returns the row of the page for a button: that of the screen, where several have one with the text.
func (p *presser) rowOf(screen, text string) (of buttonRow) {
	for _, r := range p.rows {
		if r.is(text) && (of.label == "" || r.screen == screen) {
			of = r
		}
	}
	return of
}

// pressOne presses a button, which has an effect: it is answered in words, or the chat shows something else. It returns false if the
// message has other buttons meanwhile.
func (p *presser) pressOne(m telegram.Message, name string) bool {
	p.t.Helper()
	edits := func() int { return len(p.srv.Calls(telegram.Methods("editMessageText"))) }
	before, edited := p.look(), edits()
	a, err := p.chat.Person().Press(p.soon(), m, name)
	if errors.Is(err, telegram.ErrNoButton) {
		return false
	}
	if err != nil {
		p.fatal(err)
	}
	// What is answered in words may change the chat as well, and a button that is there then is pressed next.
	for until := time.Now().Add(time.Second); a.Text != "" && p.look() == before && time.Now().Before(until); {
		time.Sleep(5 * time.Millisecond)
	}
	if a.Text == "" {
		eventually(p.t, fmt.Sprintf("an effect of %q on %q", name, m.Text), func() bool {
			return p.look() != before || strings.HasPrefix(name, "↻") && edits() > edited // nothing may be new
		})
	}
	return true
}

// look is all that the chat shows.
func (p *presser) look() string {
	var all strings.Builder
	for _, m := range p.chat.View().FromBot() {
		fmt.Fprintln(&all, m.ID, m.Text, m.Keyboard, m.Media != nil)
	}
	return all.String()
}

// Every button of docs/buttons.md is pressed by a test, and does something: here those that screens show in any chat, and in the tests
// that name them those that need a certain moment.
func TestEveryButtonIsPressed(t *testing.T) {
	town := newTown(t, func(c *config.Config) { c.Permissions.Mode = "ask" })
	p := &presser{town, buttonRows(t), map[buttonRow]bool{}}
	if len(p.rows) < 100 {
		t.Fatalf("the page has %d buttons", len(p.rows))
	}
	town.sh(
		`git init -q -b main; git config user.name Ann; git config user.email a@b; mkdir sub; echo one > sub/a.txt; git add .; git commit -qm one; echo two >> sub/a.txt`)
	town.say("%s", `[[start]] [[usage in=10 out=5 cost=0.1]] `+tableAnswer)
	town.awaitDone(1)
	p.scene("tables", func() {
		sent := town.say("%s", `[[start]] `+tableAnswer)
		town.awaitMessage(func(m telegram.Message) bool { return m.ID > sent.ID && m.HasButton("🖼 Table, dark") })
	})
	p.scene("changes", func() {
		town.answer("/checkpoint here", "Remembered")
		town.answer("/checkpoint list", "Press a checkpoint")
	})
	p.scene("files", func() { town.answer("/files sub", "📁") })
	p.scene("usage", func() { town.answer("/usage", "by day") })
	// no rule allows the next
	commands := []string{"touch a", "mkdir b", "cp a c", "mv c d", "rm d", "ln a e", "truncate -s 0 f", "rmdir b"}
	p.scene("approval", func() {
		for _, m := range town.chat.View().FromBot() {
			// a button that was pressed before, on the card of another rule
			if rule := "✅ Allow with this rule"; m.HasButton(rule) {
				town.pressOn(m, rule)
				town.awaitNoButton(rule)
			}
		}
		town.say(`[[start]] [[ask cmd="%s"]] [[text "was asked"]]`, commands[0])
		commands = commands[1:]
		town.awaitButton("✅ Allow once")
	})
	town.say("/abort")
	town.awaitNoButton("✅ Allow once")
	p.scene("cron", func() {
		town.answer("/cron every weekday at 8:30 look", "8:30")
	})
	p.scene("cron", func() { town.say("/cron"); town.await("8:30") })
	p.scene("sessions", func() {
		town.answer("/new", "New session")
		town.awaitAfter(town.say(`[[start]] [[text "of a session"]]`), "of a session")
		town.answer("/sessions", "Sessions of this chat")
	})
	p.scene("agent", func() { town.answer("/context", "Context of") })
	p.scene("agent", func() { town.answer("/cmd", "Commands and skills of") })
	p.scene("menu", func() { town.answer("/permissions", "Now: ") }) // the last: it denies tools
	// what does the same with other words, or only differs in where it stands
	alike := map[string]string{
		"🌱 Start fresh": "🌱 New session with a summary", "⏰ Show the job": "‹ All jobs",
		"Keep planning, with a reason…": "Deny with reason…",
		"▶️ Run it without":             "🗜 Shorten it",
	}
	tests := sourcesOfTests(t)
	for _, r := range p.rows {
		if of := alike[r.label]; of != "" {
			r.label = of
		}
		words := strings.TrimFunc(r.fixed(), func(c rune) bool { return !unicode.IsLetter(c) })
		if !p.pressed[r] && !strings.Contains(tests, r.fixed()) && !strings.Contains(tests, `"`+words) {
			t.Errorf("no test presses %q of the screen %s", r.label, r.screen)
		}
	}
}

// sourcesOfTests returns the tests that press buttons, but for the one above.
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
