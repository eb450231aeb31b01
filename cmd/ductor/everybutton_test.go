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

// presser presses each new button of a chat.
type presser struct {
	*town
	rows    []buttonRow
	pressed map[buttonRow]bool
}

// last are buttons that end a screen. The presser presses them when no others are left.
var last = []string{"Close", "✖", "‹", "🗑", "⏹"}

// pressScreen opens a screen and presses its new buttons, until no new ones appear.
func (p *presser) pressScreen(screen string, open func()) {
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

// pressAll presses the buttons of messages after one. It reports whether a button of the page was among them.
func (p *presser) pressAll(screen string, after telegram.MessageID) (any bool) {
	p.t.Helper()
	seen := map[string]bool{}
	for range 40 {
		m, name, row, found := p.next(screen, after, seen)
		if !found {
			return any
		}
		if !p.pressOne(m, name) {
			continue // the button may have returned
		}
		seen[name] = true
		if row.label != "" {
			p.pressed[row], any = true, true
		}
	}
	return any
}

// next returns a button to press: first one of the page, then one that leads to others.
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
	// A press with a text as its answer may also change the chat, and the next button depends on that.
	for until := time.Now().Add(time.Second); a.Text != "" && p.chatText() == before && time.Now().Before(until); {
		time.Sleep(5 * time.Millisecond)
	}
	if a.Text == "" {
		eventually(p.t, fmt.Sprintf("an effect of %q on %q", name, m.Text), func() bool {
			return p.chatText() != before || strings.HasPrefix(name, "↻") && edits() > edited // the refreshed content may be the same
		})
	}
	return true
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
	p := &presser{town, buttonRows(t), map[buttonRow]bool{}}
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
	// No rule allows the following commands.
	commands := []string{"touch a", "mkdir b", "cp a c", "mv c d", "rm d", "ln a e", "truncate -s 0 f", "rmdir b"}
	p.pressScreen("approval", func() {
		for _, m := range town.chat.View().FromBot() {
			// This button was pressed before, for another rule.
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
	// Buttons with the same effect as another one, under another label or in another place.
	alike := map[string]string{
		"🌱 Start fresh": "🌱 New session with a summary", "⏰ Show the job": "‹ All jobs",
		"Keep planning, with a reason…": "Deny with reason…",
		"▶️ Without arguments":          "🗜 Compact",
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
