// Package checks implements the command /doctor, which shows owners whether ductor is set up correctly.
package checks

import (
	"context"
	"crypto/rand"
	"strings"
	"sync/atomic"

	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/bot/tgapi"
	"ductor/cli"
	"ductor/lang"
	"ductor/orchestrator"
)

// Report is the result of the checks. It contains no secrets.
type Report struct {
	Failures []Problem // problems that prevent ductor from working
	Warnings []Problem // all other problems
	Passed   int
	LogIn    []cli.Agent // agents whose default account on this machine is not logged in
}

// Problem is the result of a failed check.
type Problem struct{ Name, Text, Fix string }

// Options configures a Screen. All fields except Examine are required.
type Options struct {
	// Examine runs the checks, which can take a minute. It returns early if ctx is cancelled. If Examine is nil,
	// /doctor is not available.
	Examine  func(ctx context.Context) Report
	Messages *message.Messages
	Finish   func(ctx context.Context, updates []int64, notices ...orchestrator.Message) (done bool)
	Beside   func(func(ctx context.Context)) // runs a function in a new goroutine
	Lang     *lang.Choices
}

// Screen implements /doctor. It runs the checks only once at a time. It is safe for concurrent use.
type Screen struct {
	o    Options
	busy atomic.Bool
}

// New returns a Screen.
func New(o Options) *Screen { return &Screen{o: o} }

// Offered reports whether /doctor is available.
func (s *Screen) Offered() bool { return s.o.Examine != nil }

// Doctor handles "/doctor". It sends a message at once, and replaces the text of this message by the report when the
// checks have ended. If ductor restarts during the checks, the next process changes the message to a note about the
// restart. If replyTo is not 0, the message replies to the message with this ID. Groups get no report, because the
// report describes the owner's machine.
func (s *Screen) Doctor(ctx context.Context, by orchestrator.Press, replyTo int) {
	p := s.o.Lang.Of(by.Conversation.Chat)
	refuse := func(why lang.Key) {
		c := message.Content{Text: render.Plain(p.Text(why)), ReplyTo: replyTo}
		s.o.Finish(ctx, by.Updates, message.Compose(by.Conversation, c))
	}
	switch {
	case by.Conversation.Group():
		refuse("checks.in-private")
		return
	case !s.busy.CompareAndSwap(false, true):
		refuse("checks.running")
		return
	}
	r := &round{s: s, p: p, replyTo: replyTo}
	begun := r.last(p.Text("checks.begun"))
	begun.Lifecycle = message.Growing
	r.shown.Store(&begun)
	r.message = s.o.Messages.Early(message.Spec{Key: "doctor/" + rand.Text(), To: by.Conversation, Content: r.content})
	row, _ := r.message.Keep(r.last(p.Text("checks.restarted")))
	stored := s.o.Finish(ctx, by.Updates, row)
	if !stored { // the update is not marked as handled, so the bot handles the command again later
		r.shown.Store(new(r.last(p.Text("checks.not-stored"))))
	}
	r.message.Kept(stored)
	if stored {
		s.o.Beside(r.run)
	} else {
		s.busy.Store(false)
	}
}

// round is one execution of the checks. Its message first tells the user to wait, and then shows the report.
type round struct {
	s       *Screen
	p       lang.Printer
	replyTo int
	message *message.Message
	shown   atomic.Pointer[message.Content] // current content of the message
}

func (r *round) run(ctx context.Context) {
	defer r.s.busy.Store(false)
	report := r.s.o.Examine(ctx)
	if ctx.Err() != nil {
		return
	}
	last := r.last(reportText(r.p, report))
	for _, agent := range report.LogIn {
		of := orchestrator.AgentEnv{Agent: agent}
		last.Keyboard = append(last.Keyboard, []tgapi.Button{tgapi.LogInButton(r.p, of.LogInID())})
	}
	r.shown.Store(&last)
	r.message.Announce(last)
	if row, owed := r.message.Keep(last); owed {
		r.message.Kept(r.s.o.Finish(ctx, nil, row))
		return
	}
	r.message.Update(outbox.Awaited)
}

func (r *round) content(context.Context) (message.Content, error) { return *r.shown.Load(), nil }

func (r *round) last(text string) message.Content {
	return message.Content{Text: render.Plain(text), ReplyTo: r.replyTo}
}

// Maximum lengths of a line and of the report in bytes, so that the report fits into one message.
const (
	mostLine   = 300
	mostReport = 3500
)

// reportText describes the problems, the failures first, and the number of passed checks.
func reportText(p lang.Printer, r Report) string {
	var b strings.Builder
	more := 0
	add := func(mark string, problems []Problem) {
		for _, f := range problems {
			entry := mark + " " + f.Name + ": " + render.Cut(f.Text, mostLine) + "\n" + p.Text("checks.fix",
				render.Cut(f.Fix, mostLine)) + "\n\n"
			if b.Len()+len(entry) > mostReport {
				more++
				continue
			}
			b.WriteString(entry)
		}
	}
	add("❌", r.Failures)
	add("⚠️", r.Warnings)
	if more > 0 {
		b.WriteString(p.Text("checks.more", more) + "\n\n")
	}
	return b.String() + p.Text("checks.passed", r.Passed)
}
