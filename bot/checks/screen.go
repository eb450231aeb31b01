// Package checks is what owners see of the checks of ductor's set-up: /doctor.
package checks

import (
	"context"
	"crypto/rand"
	"strings"
	"sync/atomic"

	"ductor/bot/message"
	"ductor/bot/outbox"
	"ductor/bot/render"
	"ductor/lang"
	"ductor/orchestrator"
)

// Examiner runs the checks. It may take a minute, and returns early when ctx ends.
type Examiner interface {
	Examine(ctx context.Context) Report
}

// Report is what the checks found. No text in it holds a secret.
type Report struct {
	Failures []Problem // keep ductor from working
	Warnings []Problem // worth a look
	Passed   int
}

// Problem is what a check found amiss.
type Problem struct{ Name, Text, Fix string }

// Options are what a Screen is made of. Examiner may be nil; all else is required.
type Options struct {
	Examiner Examiner
	Messages *message.Messages
	Finish   func(ctx context.Context, updates []int64, notices ...orchestrator.Message) (done bool)
	Beside   func(func(ctx context.Context)) // runs what no handler waits for
	Lang     *lang.Choices
}

// Screen runs the checks for an owner, one round at a time. Safe for concurrent use.
type Screen struct {
	o    Options
	busy atomic.Bool
}

// New makes a Screen.
func New(o Options) *Screen { return &Screen{o: o} }

// Offered says whether there are checks.
func (s *Screen) Offered() bool { return s.o.Examiner != nil }

// Doctor answers "/doctor", in reply to a message or, for 0, to none: at once with a message that becomes the report. The message
// becomes one that says so if ductor is restarted before. The report is about the machine, so groups do not get it.
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
	begun.Life = message.Changes
	r.shown.Store(&begun)
	r.message = s.o.Messages.Early(message.Spec{Key: "doctor/" + rand.Text(), To: by.Conversation, Content: r.content})
	row, _ := r.message.Keep(r.last(p.Text("checks.restarted")))
	stored := s.o.Finish(ctx, by.Updates, row)
	if !stored { // the checks run when the update is handled again
		r.shown.Store(new(r.last(p.Text("checks.not-stored"))))
	}
	r.message.Kept(stored)
	if stored {
		s.o.Beside(r.run)
	} else {
		s.busy.Store(false)
	}
}

// round is one run of the checks, and the message that tells of it.
type round struct {
	s       *Screen
	p       lang.Printer
	replyTo int
	message *message.Message
	shown   atomic.Pointer[message.Content] // what the message shows now
}

// run runs the checks and shows the report. At the end of ductor it leaves the message to the next process.
func (r *round) run(ctx context.Context) {
	defer r.s.busy.Store(false)
	report := r.s.o.Examiner.Examine(ctx)
	if ctx.Err() != nil {
		return
	}
	last := r.last(reportText(r.p, report))
	r.shown.Store(&last)
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

// reportText gives the problems, the worst first, and counts the checks that passed.
func reportText(p lang.Printer, r Report) string {
	var b strings.Builder
	more := 0
	add := func(mark string, problems []Problem) {
		for _, f := range problems {
			entry := mark + " " + f.Name + ": " + render.Cut(f.Text, mostLine) + "\n" + p.Text("checks.fix", render.Cut(f.Fix, mostLine)) + "\n\n"
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
