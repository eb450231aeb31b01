package claude

import (
	"maps"
	"slices"
	"sync"

	"ductor/cli"
)

// memory is what the turns of one process share: totals that Claude counts from the start of the
// process, and what was said once and need not be said again.
type memory struct {
	costUSD float64
	byModel map[cli.ModelID]cli.Usage
	denied  map[string]bool // by digest of the call's id
	denials []string        // the same in order
	warned  map[string]bool
	model   cli.ModelID // as init named it last
	tasks   tasks
	mode    string // the permission mode that Claude said it went over to; empty if it did not
}

func newMemory() *memory {
	return &memory{
		byModel: map[cli.ModelID]cli.Usage{},
		denied:  map[string]bool{},
		warned:  map[string]bool{},
	}
}

// deny notes a call that was not allowed, and says whether it is news.
func (m *memory) deny(call string) bool {
	if m.denied[call] {
		return false
	}
	m.denied[call] = true
	m.denials = append(m.denials, call)
	return true
}

// tasks are what Claude began, and has not told the end of in a turn: after a turn, the work in the background. Safe for
// concurrent use.
type tasks struct {
	mu   sync.Mutex
	open map[string]bool // by id: true once it has ended, which Claude tells in a turn that is still to come
}

// line learns from a line what begins and ends.
func (t *tasks) line(l *line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case l.Type == "result":
		maps.DeleteFunc(t.open, func(_ string, ended bool) bool { return ended })
	case l.Type != "system" || l.TaskID == "":
	case l.Subtype == "task_started":
		t.begin(l.TaskID)
	case l.Subtype == "task_notification" && l.Status != nil && (*l.Status == "completed" || *l.Status == "failed"):
		if _, open := t.open[l.TaskID]; open {
			t.open[l.TaskID] = true
		}
	case l.Subtype == "task_notification": // somebody ended it
		delete(t.open, l.TaskID)
	}
}

// begin is called with mu held, or by who alone knows t.
func (t *tasks) begin(id string) {
	if t.open == nil {
		t.open = map[string]bool{}
	}
	t.open[id] = false
}

// list is sorted.
func (t *tasks) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.open))
}
