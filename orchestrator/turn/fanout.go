package turn

import (
	"context"
	"sync"
	"time"

	"ductor/cli"
	"ductor/orchestrator"
	"ductor/orchestrator/steps"
)

// Fanout passes each event of one turn to its observers, in this order:
//  1. the Redactor, which removes secrets and may hold text back until a later event
//  2. the watch of the turn's files
//  3. the recorder of the steps
//  4. the trace of the attempt
//  5. the progress, which determines what ductor may do after a failure
//  6. the owner's terminals
//  7. the card in the chat
//
// A mutex makes sure that the observers get one event at a time. Fanout is safe for concurrent use.
type Fanout struct {
	redactor *Redactor

	mu       sync.Mutex
	files    orchestrator.TurnWatch // nil before the prompt is sent, or if nothing watches files
	trace    orchestrator.TurnTrace
	steps    steps.Recorder
	progress progress
	viewers  func(cli.Event)          // shows events in terminals; nil for none
	open     func() orchestrator.Card // opens the card; nil if the chat shows only the outcome of the turn
	card     orchestrator.Card        // nil until it is open
	held     []cli.Event              // events to show once the card is open
	ended    bool                     // whether EndCard was called
}

// NewFanout creates a Fanout that has no card yet.
func NewFanout(now func() time.Time) *Fanout {
	return &Fanout{steps: steps.Recorder{Now: now}, progress: newProgress()}
}

// Redact sets the Redactor of the next attempt.
func (f *Fanout) Redact(r *Redactor) { f.redactor = r }

// Event passes an event of the agent to the observers. It blocks until the Redactor has read the secrets.
func (f *Fanout) Event(ev cli.Event) {
	known := f.redactor.Known()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.redactor.pass(known, ev, f)
}

// Show passes an event of ductor itself to the observers, except for the file watch and the trace, which observe only
// the agent. The event must not contain secrets.
func (f *Fanout) Show(ev cli.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps.Observe(ev)
	f.showLocked(ev)
}

// Trace sets the trace of the next attempt.
func (f *Fanout) Trace(t orchestrator.TurnTrace) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trace = t
}

// observeLocked passes an event without secrets to the observers.
func (f *Fanout) observeLocked(ev cli.Event) {
	if f.files != nil {
		f.files.Observe(ev)
	}
	f.steps.Observe(ev)
	if f.trace != nil {
		f.trace.Observe(ev)
	}
	f.showLocked(ev)
}

func (f *Fanout) showLocked(ev cli.Event) {
	f.progress.observe(ev)
	if f.viewers != nil {
		f.viewers(ev)
	}
	switch {
	case f.card != nil:
		f.card.Show(ev)
	case f.open != nil:
		f.holdLocked(ev)
	}
}

// holdLocked stores an event until the card is open. It merges consecutive texts.
func (f *Fanout) holdLocked(ev cli.Event) {
	if delta, ok := ev.(cli.TextDelta); ok && len(f.held) > 0 {
		if last, ok := f.held[len(f.held)-1].(cli.TextDelta); ok {
			f.held[len(f.held)-1] = cli.TextDelta{Text: last.Text + delta.Text}
			return
		}
	}
	f.held = append(f.held, ev)
}

// SetViewers sets the function that shows events in terminals. The function must not block.
func (f *Fanout) SetViewers(show func(cli.Event)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.viewers = show
}

// SetCard sets the function that opens the card. The first call of Card calls this function. Until then, the Fanout
// stores the events for the card.
func (f *Fanout) SetCard(open func() orchestrator.Card) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = open
}

// Card returns the card. The first call opens it and shows the stored events on it.
func (f *Fanout) Card() orchestrator.Card {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.card == nil {
		f.card = f.open()
		for _, ev := range f.held {
			f.card.Show(ev)
		}
		f.held = nil
		if f.ended {
			f.card.End()
		}
	}
	return f.card
}

// EndCard calls Card.End, so that the card ignores later events. If the card is not open yet, the Fanout calls End when
// it opens the card.
func (f *Fanout) EndCard() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	if f.card != nil {
		f.card.End()
	}
}

// WatchFiles calls start to watch the turn's files, and passes later events to the returned TurnWatch. If the turn
// already has a TurnWatch from an earlier attempt, WatchFiles does nothing.
func (f *Fanout) WatchFiles(start func() orchestrator.TurnWatch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files == nil {
		f.files = start()
	}
}

// EndFiles ends the watch of files. It returns a function that computes the changes of the turn, or nil if the turn did
// nothing that could change a file.
func (f *Fanout) EndFiles() func(context.Context) orchestrator.Changed {
	if w := f.fileWatch(); w != nil {
		return w.End()
	}
	return nil
}

// LeaveFiles ends the watch of files if the turn continues while ductor restarts.
func (f *Fanout) LeaveFiles() {
	if w := f.fileWatch(); w != nil {
		w.Leave()
	}
}

func (f *Fanout) fileWatch() orchestrator.TurnWatch {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.files
}

// Steps returns the steps of the turn so far.
func (f *Fanout) Steps() []orchestrator.Step {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.steps.Steps()
}

// Ran reports whether the agent has done anything, and how many tools have run.
func (f *Fanout) Ran() (anything bool, tools int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.progress.ran, f.progress.toolsThatRan()
}

// Replaced returns the agents that failed in the turn, so that another agent took over.
func (f *Fanout) Replaced() []cli.Agent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.progress.replaced
}
