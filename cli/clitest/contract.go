package clitest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ductor/cli"
)

// Violations checks the events of a complete turn against the contract of cli.Event. It returns a sentence for each
// violation.
func Violations(events []cli.Event) []string {
	c := contract{tools: map[cli.ToolID]bool{}}
	for i, ev := range events {
		c.event(i, ev)
	}
	if c.results == 0 {
		c.wrong("there is no Result")
	}
	for id, open := range c.tools {
		if open && !c.detached {
			c.wrong("tool %q was started and not ended", id)
		}
	}
	return c.found
}

type contract struct {
	found    []string
	tools    map[cli.ToolID]bool // true from ToolStarted until ToolEnded
	answer   cli.Answer
	named    cli.SessionStarted
	results  int
	detached bool
	caught   int
	taken    int
}

func (c *contract) wrong(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func (c *contract) event(i int, ev cli.Event) {
	if c.results > 0 {
		c.wrong("%T comes after the Result", ev)
	}
	switch ev := ev.(type) {
	case cli.SessionStarted:
		if i > c.caught && c.named == (cli.SessionStarted{}) {
			c.wrong("SessionStarted is event %d, not the first", i)
		}
		c.named = ev
	case cli.PromptAccepted:
		if c.taken++; c.taken > 1 || c.named == (cli.SessionStarted{}) {
			c.wrong("PromptAccepted comes %d times, in session %q", c.taken, c.named.AgentSessionID)
		}
	case cli.TextDelta:
		if ev.Text == "" {
			c.wrong("a TextDelta is empty")
		}
		c.answer.Add(ev)
	case cli.TextRetracted:
		if have := len(c.answer.String()); ev.Bytes <= 0 || ev.Bytes > have {
			c.wrong("%d bytes are retracted of %d", ev.Bytes, have)
		}
		c.answer.Add(ev)
	case cli.ToolStarted:
		if _, known := c.tools[ev.ID]; known || ev.ID == "" {
			c.wrong("tool %q is started twice, or has no id", ev.ID)
		}
		c.tools[ev.ID] = true
	case cli.ToolChanged:
		if !c.tools[ev.ID] {
			c.wrong("tool %q is changed and was not open", ev.ID)
		}
	case cli.ToolEnded:
		if !c.tools[ev.ID] {
			c.wrong("tool %q is ended and was not open", ev.ID)
		}
		if ev.Duration < 0 {
			c.wrong("tool %q took %s", ev.ID, ev.Duration)
		}
		c.tools[ev.ID] = false
	case cli.CaughtUp:
		if c.caught++; c.caught > 1 {
			c.wrong("CaughtUp comes %d times", c.caught)
		}
	case cli.Result:
		c.result(ev)
	}
}

func (c *contract) result(r cli.Result) {
	c.results++
	c.detached = r.Detached
	if r.Text != c.answer.String() {
		c.wrong("the Result's text is %s, the deltas make %s", shown(r.Text), shown(c.answer.String()))
	}
	if c.named == (cli.SessionStarted{}) && r.Err == nil && !r.Aborted && !r.Detached {
		c.wrong("a turn that went well named no session")
	}
	if c.named.AgentSessionID != "" && r.AgentSessionID != c.named.AgentSessionID {
		c.wrong("the Result is of session %q, the turn of %q", r.AgentSessionID, c.named.AgentSessionID)
	}
	if r.Aborted && r.Err != nil {
		c.wrong("the Result is aborted and failed: %v", r.Err)
	}
	if r.Detached && (r.Err != nil || r.Aborted) {
		c.wrong("the Result is detached, and aborted %v or failed: %v", r.Aborted, r.Err)
	}
	if r.Err != nil && (r.Err.Kind == "" || r.Err.Agent == "") {
		c.wrong("the failure lacks kind or agent: %+v", *r.Err)
	}
	if r.Duration < 0 || r.Consumed.CostUSD < 0 || r.Consumed.Usage.Total() < 0 {
		c.wrong("the Result counts below zero: %+v", r)
	}
}

// CheckOutputs checks the events of a complete turn against the contract of cli.Event, and compares the outputs of its
// tools with want. The keys of want are the tools' titles.
func CheckOutputs(t testing.TB, events []cli.Event, want map[string]string) {
	t.Helper()
	Keeps(t, events)
	titles, outputs := map[cli.ToolID]string{}, map[string]string{}
	for _, ev := range events {
		switch ev := ev.(type) {
		case cli.ToolStarted:
			titles[ev.ID] = ev.Title
		case cli.ToolEnded:
			outputs[titles[ev.ID]] = ev.Output
		}
	}
	if diff := cmp.Diff(want, outputs); diff != "" {
		t.Error(diff)
	}
}
