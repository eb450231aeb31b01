// Package checks shows owners the results of the checks of ductor's set-up: /doctor.
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
	Failures []Problem // problems that keep ductor from working
	Warnings []Problem // problems worth a look
	Passed   int
	LogIn    []cli.Agent // agents whose default account on this host is not logged in
}

// Problem is one failed check.
type Problem struct{ Name, Text, Fix string }

// Options configures a Screen. Examine may be nil; everything else is required.
type Options struct {
	// Examine runs the checks, which may take a minute. It returns early if ctx is done.
	Examine  func(ctx context.Context) Report
	Messages *message.Messages
	Finish   func(ctx context.Context, updates []int64, notices ...orchestrator.Message) (done bool)
	Beside   func(func(ctx context.Context)) // starts a function in its own goroutine
	Lang     *lang.Choices
}

// Screen runs the checks for an owner, one run at a time. Safe for concurrent use.
type Screen struct {
	o    Options
	busy atomic.Bool
}

// New returns a Screen.
func New(o Options) *Screen { return &Screen{o: o} }

// Offered reports whether the checks are configured.
func (s *Screen) Offered() bool { return s.o.Examine != nil }

// Doctor answers "/doctor". The answer replies to the message replyTo unless that is 0. Doctor immediately sends a
// message and later edits it into the report. If ductor restarts before the report, the message mentions the restart.
// Groups get no report, because it describes the machine.
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
	if !stored { // ductor runs the checks when it handles the update again
		r.shown.Store(new(r.last(p.Text("checks.not-stored"))))
	}
	r.message.Kept(stored)
	if stored {
		s.o.Beside(r.run)
	} else {
		s.busy.Store(false)
	}
}

// round is one run of the checks with its message.
type round struct {
	s       *Screen
	p       lang.Printer
	replyTo int
	message *message.Message
	shown   atomic.Pointer[message.Content] // the message's current content
}

// run runs the checks and shows the report. If ductor stops, run leaves the message to the next process.
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

// Bounds of a report, in bytes, so that it fits into a message.
const (
	mostLine   = 300
	mostReport = 3500
)

// reportText lists the problems, worst first, and counts the passed checks.
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
