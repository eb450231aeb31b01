package turn

import (
	"slices"
	"sync"
	"sync/atomic"

	"ductor/cli"
	"ductor/internal/growstack"
	"ductor/internal/secrets"
)

// Redactor removes secrets from the events of one attempt before they are shown or stored. Known, Learn and Result are
// safe for concurrent use.
type Redactor struct {
	ready <-chan struct{} // closed when the secrets have been read
	known atomic.Pointer[secrets.Set]
	learn sync.Mutex // held while Learn replaces known

	text, thought secrets.Stream // text and reasoning of the agent
}

// NewRedactor creates a Redactor. It uses spawn to call read in the background. Until read has returned the secrets, no
// event passes the Redactor. But ductor can send the prompt before.
func NewRedactor(spawn func(func()), read func() *secrets.Set) *Redactor {
	done := make(chan struct{})
	r := &Redactor{ready: done}
	spawn(func() {
		defer close(done)
		growstack.Grow()
		r.known.Store(read())
	})
	return r
}

// Known returns the secrets. It waits until they have been read.
func (r *Redactor) Known() *secrets.Set {
	if known := r.known.Load(); known != nil {
		return known
	}
	<-r.ready
	return r.known.Load()
}

// Learn adds a user's secret answers to the secrets, because the agent may print them.
func (r *Redactor) Learn(questions []cli.Question, answers [][]string) {
	<-r.ready
	r.learn.Lock()
	defer r.learn.Unlock()
	for i, q := range questions {
		if q.Secret && i < len(answers) {
			r.known.Store(r.known.Load().With(slices.DeleteFunc(slices.Clone(answers[i]), func(answer string) bool {
				return slices.ContainsFunc(q.Options, func(o cli.Option) bool { return o.Label == answer })
			})...))
		}
	}
}

// Result removes the secrets from the result of the attempt.
func (r *Redactor) Result(result cli.Result) cli.Result {
	clean, _ := secrets.Clean(r.Known(), result)
	return clean
}

// pass removes secrets from an event and passes the event to a Fanout. It holds back text that could be the start of a
// secret, until later text shows whether it is a secret. If the card shows the next event below the text, pass first
// passes the held text.
func (r *Redactor) pass(known *secrets.Set, ev cli.Event, to *Fanout) {
	switch ev := ev.(type) {
	case cli.TextDelta:
		r.endThought(known, to)
		passText(r.text.Add(known, ev.Text), to)
		return
	case cli.TextRetracted:
		passText(r.text.Retract(known, ev.Bytes), to)
		return
	case cli.ThinkingDelta:
		passText(r.text.Flush(known), to)
		passThought(r.thought.Add(known, ev.Text), to)
		return
	case cli.Status, cli.RateLimited, cli.LimitsReported, cli.SessionStarted, cli.CaughtUp:
	default:
		r.endThought(known, to)
		passText(r.text.Flush(known), to)
	}
	if ended, ok := ev.(cli.ToolEnded); ok { // remove color codes first, because they could split a secret
		ended.Output, ended.Err = cli.WithoutCodes(ended.Output), cli.WithoutCodes(ended.Err)
		ev = ended
	}
	clean, _ := secrets.Clean(known, ev)
	to.observeLocked(clean)
}

func (r *Redactor) endThought(known *secrets.Set, to *Fanout) {
	passThought(r.thought.Flush(known), to)
	r.thought = secrets.Stream{}
}

func passText(c secrets.Change, to *Fanout) {
	if c.Retract > 0 {
		to.observeLocked(cli.TextRetracted{Bytes: c.Retract})
	}
	if c.Text != "" {
		to.observeLocked(cli.TextDelta{Text: c.Text})
	}
}

// passThought passes reasoning to a Fanout. Reasoning never retracts text, so passThought ignores c.Retract.
func passThought(c secrets.Change, to *Fanout) {
	if c.Text != "" {
		to.observeLocked(cli.ThinkingDelta{Text: c.Text})
	}
}
