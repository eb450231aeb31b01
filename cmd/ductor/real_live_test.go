package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ductor/internal/config"
	"ductor/internal/realagent"
	"ductor/internal/sim/telegram"
)

var updateTable = flag.Bool("update-agents", false, "write the table of what each agent does into docs/agents.md")

// feat is a capability of a real agent.
type feat struct {
	name string
	// show uses the capability and fails the test if that does not work. It returns a reason if the agent lacks it.
	show func(*liveTown) (reason string)
}

// liveTown is a town with a real agent that asks.
type liveTown struct {
	*town
	agent string
	turns int // number of complete answers
}

// feats returns the capabilities in the order in which the session must see them.
func feats() []feat {
	return []feat{
		{"answers twice in one process", (*liveTown).answersTwice},
		{"runs a tool that was allowed by a button", (*liveTown).runsWhatIsAllowed},
		{"does not run what was denied by a button", (*liveTown).leavesWhatIsDenied},
		{"is steered while it works", (*liveTown).isSteered},
		{"answers the next message instead, in the same process", (*liveTown).isReplaced},
		{"is interrupted, and the session continues", (*liveTown).isInterrupted},
		{"continues after its process was ended to make room", (*liveTown).resumesAfterEviction},
	}
}

// The test uses every real agent, live, from the chat. It generates the table of capabilities in docs/agents.md.
func TestEveryRealAgentLive(t *testing.T) {
	realagent.LongOnly(t)
	agents := []string{"claude", "codex", "gemini", "copilot"}
	table := map[string]map[string]string{}
	for _, agent := range realagent.Some(agents...) {
		table[agent] = map[string]string{}
		t.Run(agent, func(t *testing.T) {
			town, _ := realTown(t, agent, func(c *config.Config) {
				c.Permissions.Mode, c.Agents.MaxLive = "ask", 1
				c.Telegram.AllowedUsers = append(c.Telegram.AllowedUsers, neighbour)
			})
			live := &liveTown{town: town, agent: agent}
			for _, f := range feats() {
				reason := f.show(live)
				table[agent][f.name] = "yes"
				if reason != "" {
					table[agent][f.name] = reason
				}
				if t.Failed() {
					t.Fatalf("at: %s", f.name)
				}
			}
		})
	}
	liveTable().check(t, agents, table)
}

// answer sends a text and waits for the end of its answer.
func (l *liveTown) answer(format string, args ...any) telegram.Message {
	l.t.Helper()
	l.say(format, args...)
	return l.next()
}

func (l *liveTown) next() telegram.Message {
	l.t.Helper()
	l.turns++
	return l.awaitDone(l.turns)
}

// pids returns the agent's processes.
func (l *liveTown) pids() map[int]bool {
	l.t.Helper()
	pids := map[int]bool{}
	for _, run := range l.runs() {
		if run.Alive && purposeOf(run).Mode != "" {
			pids[run.PID] = true
		}
	}
	return pids
}

func (l *liveTown) answersTwice() string {
	if m := l.answer(`first question [[start]] [[text "the first answer"]]`); !strings.Contains(m.Text,
		"the first answer") {
		l.t.Errorf("it answers %q", m.Text)
	}
	before := l.pids()
	if m := l.answer(`[[start]] [[text "the second answer"]]`); !strings.Contains(m.Text, "the second answer") {
		l.t.Errorf("it answers %q", m.Text)
	}
	if after := l.pids(); len(before) != 1 || fmt.Sprint(after) != fmt.Sprint(before) {
		l.t.Errorf("the first turn was %v's, the second %v's", before, after)
	}
	return ""
}

func (l *liveTown) runsWhatIsAllowed() string {
	file := filepath.Join(l.cfg.Projects.DefaultDir, "allowed")
	l.say(`[[start]] [[tool cmd="touch %s"]] [[text "after it was allowed"]]`, file)
	l.press("✅ Allow once")
	if m := l.next(); !strings.Contains(m.Text, "after it was allowed") {
		l.t.Errorf("it answers %q", m.Text)
	}
	if _, err := os.Stat(file); err != nil {
		l.t.Errorf("what was allowed was not done: %v", err)
	}
	return ""
}

func (l *liveTown) leavesWhatIsDenied() string {
	file := filepath.Join(l.cfg.Projects.DefaultDir, "denied")
	l.say(`[[start]] [[tool cmd="touch %s"]] [[text "after it was denied"]]`, file)
	l.press("⛔ Deny")
	if m := l.next(); !strings.Contains(m.Text, "after it was denied") {
		l.t.Errorf("it answers %q", m.Text)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		l.t.Errorf("what was denied was done: %v", err)
	}
	return ""
}

func (l *liveTown) isSteered() string {
	l.say(`[[start]] [[text "it counts " ]] [[words number n=100 delay=50ms]] [[text " and has counted"]]`)
	l.awaitWord("it counts")
	l.say(`a word in between [[start]] [[text "steered"]]`)
	m, err := l.chat.AwaitMessage(l.soon(), func(m telegram.Message) bool { return m.HasButton("✖ Cancel") })
	if err != nil {
		l.fatal(err)
	}
	if !m.HasButton(steerButton) {
		l.next()
		l.next()
		return "no: a message waits for its turn"
	}
	answer, err := l.chat.Person().Press(l.soon(), m, steerButton)
	if err != nil {
		l.fatal(err)
	}
	if strings.Contains(answer.Text, "this one runs next") {
		l.next()
		l.next()
		return "no: a message waits for its turn"
	}
	if m := l.next(); !strings.Contains(m.Text, "steered") {
		l.t.Errorf("the turn that was steered says %q", m.Text)
	}
	return ""
}

const steerButton = "↪ Steer"

func (l *liveTown) isReplaced() string {
	before := l.pids()
	l.say(`[[start]] [[text "without end" ]] [[words on n=2000 delay=20ms]]`)
	l.awaitWord("without end")
	l.say(`[[start]] [[text "the next message's answer"]]`)
	l.press("⚡ Interrupt")
	l.turns++ // the interrupted answer has a footer too
	if m := l.next(); !strings.Contains(m.Text, "the next message's answer") {
		l.t.Errorf("it answers %q", m.Text)
	}
	if after := l.pids(); fmt.Sprint(after) != fmt.Sprint(before) {
		l.t.Errorf("the interrupted turn was %v's, the next one %v's", before, after)
	}
	return ""
}

func (l *liveTown) isInterrupted() string {
	l.say(`[[start]] [[text "on and on "]] [[words on n=2000 delay=20ms]]`)
	l.awaitWord("on and on")
	began := time.Now()
	l.say("/abort")
	l.await("Aborted")
	if took := time.Since(began); took > 20*time.Second { // the turn would have run twice as long
		l.t.Errorf("the abort took %s", took)
	}
	l.turns++ // the aborted answer has a footer too
	if m := l.answer("what was said? [[start]] [[history]]"); !strings.Contains(m.Text, "first question") {
		l.t.Errorf("after the abort it knows %q", m.Text)
	}
	return ""
}

func (l *liveTown) resumesAfterEviction() string {
	before := l.pids()
	other := l.srv.Private(neighbour, "Neighbour")
	other.Person().Send(other, `elsewhere [[start]] [[text "in another conversation"]]`)
	if _, err := other.AwaitText(l.soon(), "in another conversation"); err != nil {
		l.fatal(err)
	}
	if m := l.answer("what was said? [[start]] [[history]]"); !strings.Contains(m.Text, "first question") {
		l.t.Errorf("after its process was ended it knows %q", m.Text)
	}
	if after := l.pids(); len(after) == 1 && fmt.Sprint(after) == fmt.Sprint(before) {
		return "yes: one process serves all conversations"
	}
	return ""
}

// liveTable returns the table of the agents' capabilities.
func liveTable() agentTable {
	table := agentTable{
		begin:  "<!-- what each agent does: written by cmd/ductor TestEveryRealAgentLive -update-agents -->\n",
		end:    "<!-- end -->",
		corner: "the real agent, live",
		write:  *updateTable,
	}
	for _, f := range feats() {
		table.rows = append(table.rows, f.name)
	}
	return table
}
