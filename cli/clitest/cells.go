package clitest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ductor/cli"
	"ductor/cli/frames"
	"ductor/internal/realagent"
)

// CellHarness describes an agent for Cells.
type CellHarness struct {
	Agent   string
	Framing frames.Framing
	Install func(t testing.TB, api string) realagent.CLI
	// New returns a provider that uses a launcher.
	New    func(t testing.TB, l cli.Launcher, c realagent.CLI) cli.Provider
	Noise  *regexp.Regexp // matches messages of the agent that recordings omit; may be nil
	Record *bool
	Update Update
}

// RecordFlag defines the flag -record. With it, Cells runs the real agents and records them again.
func RecordFlag() *bool {
	return flag.Bool("record", false, "record the cells anew, with the real agents")
}

// cell describes a situation, such as a denied command, for one agent. It corresponds to a cell of the table "What the
// chat shows of each agent" in docs/agents.md.
type cell struct {
	name    string
	prompts []string // one prompt for each turn of the session; empty if the agent does not support the cell
	mode    cli.PermissionMode
	deny    bool
	abortAt func(cli.Event) bool // reports whether the user aborts the last turn at this event
	abortIn time.Duration        // time from an answer to an approval until the user aborts the turn; 0 if never
	picture bool
	compact bool // the last turn shortens the context
	again   bool // before the last turn, ductor closes the session and resumes it in a new process
}

func isText(ev cli.Event) bool  { _, is := ev.(cli.TextDelta); return is }
func isAsked(ev cli.Event) bool { _, is := ev.(cli.ApprovalAsked); return is }

func cells(agent, dir string) []cell {
	say := func(format string, args ...any) []string { return []string{fmt.Sprintf("[[start]] "+format, args...)} }
	having := func(there, format string) []string {
		if there == "" {
			return nil
		}
		return say(format, there)
	}
	all := []cell{
		{name: "answer", prompts: say(`[[text "The whole answer."]]`)},
		{name: "card allowed", prompts: say(`[[tool cmd="touch allowed.txt"]] [[text "It is allowed."]]`)},
		{name: "card denied", prompts: say(`%s [[text "It is denied."]]`,
			realagent.Writes(agent, dir, "denied.txt", "a line")), deny: true},
		{name: "new file", prompts: say(`%s [[text "It is made."]]`,
			realagent.Writes(agent, dir, "fresh.txt", "a line"))},
		{name: "edit", prompts: say(`%s [[text "It is changed."]]`,
			realagent.Replaces(agent, dir, "old.txt", "second", "changed"))},
		{name: "failing command", prompts: say(`[[tool cmd="mkdir -p failed; exit 3"]] [[text "It has failed."]]`)},
		{name: "denied command", prompts: say(`[[tool cmd="touch refused.txt"]] [[text "It is refused."]]`),
			deny: true},
		{name: "abort in text", prompts: say(`[[text "On and on"]] [[hang]]`), abortAt: isText},
		{name: "abort in tool", prompts: say(`[[tool cmd="touch running; sleep 600"]]`), abortIn: 2 * time.Second},
		{name: "abort in card", prompts: say(`[[tool cmd="touch waits.txt"]]`), abortAt: isAsked},
		{name: "background", prompts: having(realagent.Background(agent, "touch bg.txt"),
			`%s [[text "It runs beside."]]`)},
		{name: "question in words", prompts: having(realagent.Asks(agent), `%s [[text "It was answered."]]`)},
		{name: "plan", prompts: having(realagent.Plans(agent), `%s [[text "It begins."]]`), mode: cli.Plan},
		{name: "picture", prompts: say(`[[text "It is seen."]]`), picture: true},
		{name: "401", prompts: say(`[[error 401 times=60]]`)},
		{name: "403", prompts: say(`[[error 403 times=60]]`)},
		{name: "broken stream",
			prompts: say(
				`[[text "This is the first half. " chunk=6 delay=10ms]] [[drop times=1]] [[text "This is the rest."]]`)},
		{name: "broken for good", prompts: say(`[[text "This is the first half. " chunk=6 delay=10ms]] [[drop]]`)},
		{name: "refused", prompts: say(`[[text "An answer that is refused."]] [[end refusal]]`)},
		{name: "context full", prompts: say(`[[error 400 times=60 message=%q]]`, realagent.TooLong(agent))},
		{name: "compact", prompts: append(say(`[[text "I shall remember it."]]`), ""), compact: true},
		{name: "kill -9", prompts: say(`[[text "It begins."]] [[hang]]`)},
		{name: "resume", prompts: append(say(`[[text "Good night."]]`), say(`[[text "Good morning."]]`)...),
			again: true},
	}
	switch agent {
	// The other agents retry these errors of the API for minutes.
	case "claude", "codex", "copilot":
		for _, status := range []string{"429", "500", "529"} {
			all = append(all, cell{name: status, prompts: say(`[[error %s times=60]]`, status)})
		}
	}
	return all
}

// Cells replays the recordings in testdata/cells, one for each situation, and compares the resulting events with golden
// files. With the flag -record, it first makes the recordings.
func Cells(t *testing.T, h CellHarness) {
	const dir = "/srv/proj"
	picture := filepath.Join(t.TempDir(), "picture.png")
	var b bytes.Buffer
	must(t, errors.Join(png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))), os.WriteFile(picture, b.Bytes(), 0o600)))
	for _, c := range cells(h.Agent, dir) {
		if len(c.prompts) == 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			at := filepath.Join("testdata", "cells", h.Agent, strings.ReplaceAll(c.name, " ", "_"))
			if *h.Record {
				h.record(t, c, filepath.Join(at, "tape.txt"), picture)
			}
			tape := readTape(t, filepath.Join(at, "tape.txt"))
			synctest.Test(t, func(t *testing.T) {
				l := &player{t: t, tape: tape, framing: h.Framing}
				p := h.New(t, l, realagent.CLI{Path: "/bin/" + tape[0].text, Work: dir})
				Golden(t, h.Update, filepath.Join(at, "events.txt"), l.toTaped(c.play(t, p, dir, picture, nil)))
			})
		})
	}
}

// record runs a situation with the real agent, and writes the recording.
func (h CellHarness) record(t *testing.T, c cell, path, picture string) {
	t.Helper()
	api := realagent.Model(t, "")
	real := h.Install(t, api.URL())
	must(t, os.WriteFile(filepath.Join(real.Work, "old.txt"), []byte("first\nsecond\nthird\n"), 0o600))
	for i, prompt := range c.prompts {
		c.prompts[i] = strings.ReplaceAll(prompt, "/srv/proj", real.Work)
	}
	r := &recording{framing: h.Framing}
	c.play(t, h.New(t, taper{Host(t), r}, real), real.Work, picture, r.killAgent)
	base := filepath.Dir(real.Work)
	slug := strings.ReplaceAll(real.Work, "/", "-")
	tape := r.scrubbed(h.Noise, real.Work, "/srv/proj", real.Work[1:], "srv/proj", slug, "-srv-proj", real.Home, "/home/bot", base, "/tmp/agent", api.URL(), "http://127.0.0.1:1")
	must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(tape.String()), 0o600)))
}

// play runs the turns of the cell, answers the agent's requests, and returns the events as text. killAgent kills a real
// agent; it is nil if p replays a recording.
func (c cell) play(t *testing.T, p cli.Provider, dir, picture string, killAgent func()) string {
	t.Helper()
	rec := &Recorder{}
	req := cli.Request{
		Dir: dir, Project: cli.WithProject, Conversation: "1/0", ChatID: 1, Attended: true, Permission: cli.Ask,
	}
	if c.mode != "" {
		req.Permission = c.mode
	}
	if c.picture {
		req.Images = []cli.Image{{Path: picture, MIME: "image/png"}}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var s cli.Session
	for i, prompt := range c.prompts {
		last := i == len(c.prompts)-1
		req.Turn, req.Prompt = cli.TurnID(fmt.Sprint("turn-", i+1)), prompt
		if last && c.compact {
			req.Task = cli.TaskCompact
		}
		if s != nil && last && c.again {
			Close(t, s)
			s = nil
		}
		if s == nil {
			var err error
			if s, err = p.Open(ctx, cli.Live, req); err != nil {
				rec.Add("it does not open: %v", err)
				return rec.String()
			}
		}
		req.Resume = c.turn(ctx, s, req, rec, last, killAgent).AgentSessionID
	}
	Close(t, s)
	return rec.String()
}

func (c cell) turn(ctx context.Context, s cli.Session, req cli.Request, rec *Recorder, last bool,
	kill func()) (result cli.Result) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	decide := func(id cli.ApprovalID, d cli.Decision) {
		go func() { _ = s.(cli.Decider).Decide(context.WithoutCancel(ctx), id, d) }() // the turn may have ended
	}
	rec.Turn()
	var answers bool
	var events []cli.Event
	s.Turn(ctx, req, func(ev cli.Event) {
		rec.Event(ev)
		events = append(events, ev)
		aborts := last && c.abortAt != nil && c.abortAt(ev)
		if aborts {
			cancel(cli.ErrAborted)
		}
		switch ev := ev.(type) {
		case cli.ApprovalAsked:
			if !aborts {
				decide(ev.ID, cli.Decision{Allow: !c.deny})
				if c.abortIn > 0 {
					time.AfterFunc(c.abortIn, func() { cancel(cli.ErrAborted) })
				}
			}
		case cli.QuestionAsked:
			d := cli.Decision{Allow: true}
			for range ev.Questions {
				d.Answers = append(d.Answers, []string{"a shade of green"})
			}
			decide(ev.ID, d)
		case cli.TextDelta:
			if kill != nil && c.name == "kill -9" && !answers {
				answers = true
				go kill()
			}
		case cli.Result:
			result = ev
		}
	})
	for _, wrong := range Violations(events) {
		rec.Add("contract: %s", wrong)
	}
	return result
}
