package demo

import (
	"context"
	"errors"
	"sync"

	"ductor/internal/sim/telegram"
)

const (
	stopReady   = "ready"
	stopRunning = "running"
	stopDone    = "done"
)

type stop struct {
	name   string
	title  string
	text   string // describes the step
	todo   string // instruction for the user after the start of the step; may be empty
	button string
	play   func(ctx context.Context, p *Page) error
	done   func(v telegram.View) bool // reports whether the step is complete; v contains only the step's messages
}

// tour plays the steps of the tour and finds out when a step is complete. It is safe for concurrent use.
type tour struct {
	p     *Page
	stops []stop
	life  context.Context
	stop  context.CancelFunc

	mu       sync.Mutex
	states   []string
	problems []string
	began    []telegram.MessageID // newest message at the start of each step
}

func newTour(p *Page, stops []stop) *tour {
	t := &tour{p: p, stops: stops}
	t.life, t.stop = context.WithCancel(context.Background())
	t.states, t.problems = make([]string, len(t.stops)), make([]string, len(t.stops))
	t.began = make([]telegram.MessageID, len(t.stops))
	for i := range t.states {
		t.states[i] = stopReady
	}
	return t
}

type wireStop struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Text    string `json:"text"`
	Todo    string `json:"todo"`
	Button  string `json:"button"`
	State   string `json:"state"`
	Problem string `json:"problem"`
}

// state returns the steps of the tour with their states, for the page. It returns no steps if there is no tour.
func (t *tour) state() []wireStop {
	list := []wireStop{}
	if !t.p.opts.Tour {
		return list
	}
	t.updateStates()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, s := range t.stops {
		list = append(list, wireStop{s.name, s.title, s.text, s.todo, s.button, t.states[i], t.problems[i]})
	}
	return list
}

func (t *tour) updateStates() {
	v := t.p.you.View()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, s := range t.stops {
		if t.states[i] == stopRunning && s.done(after(v, t.began[i])) {
			t.states[i] = stopDone
		}
	}
}

// after returns a view that contains only the messages newer than id.
func after(v telegram.View, id telegram.MessageID) telegram.View {
	for i, m := range v.Messages {
		if m.ID > id {
			v.Messages = v.Messages[i:]
			return v
		}
	}
	v.Messages = nil
	return v
}

var errNoStop = errors.New("the tour has no such stop")

// start starts a step of the tour, or starts it again. It does not block.
func (t *tour) start(_ context.Context, _ actor, q actionRequest) (any, error) {
	if !t.p.opts.Tour || q.Stop < 0 || q.Stop >= len(t.stops) {
		return nil, errNoStop
	}
	newest := telegram.MessageID(0)
	if list := t.p.you.Messages(); len(list) > 0 {
		newest = list[len(list)-1].ID
	}
	t.mu.Lock()
	if t.life.Err() != nil {
		t.mu.Unlock()
		return nil, errNoStop
	}
	t.states[q.Stop], t.problems[q.Stop], t.began[q.Stop] = stopRunning, "", newest
	t.p.running.Go(func() { t.play(q.Stop) })
	t.mu.Unlock()
	return struct{}{}, nil
}

func (t *tour) play(n int) {
	err := t.stops[n].play(t.life, t.p)
	if err == nil || t.life.Err() != nil {
		return
	}
	t.p.opts.Log.Warn("play a stop of the tour", "stop", t.stops[n].name, "err", err)
	t.mu.Lock()
	t.states[n], t.problems[n] = stopReady, "That did not work; try it again."
	t.mu.Unlock()
	t.p.record.appendEntry(entry{"tour-problem", n})
}
