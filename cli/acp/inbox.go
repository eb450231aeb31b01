package acp

import (
	"encoding/json"
	"sync"

	"ductor/cli/rpc"
)

// maxInbox is how many bytes may wait for a turn to take them. Beyond it the turn fails: to make the agent
// wait would make its other conversations wait.
const maxInbox = 64 << 20

// item is something that happened in a session. One field besides at is set.
type item struct {
	at int64 // the offset after its line; 0 for what is no line

	update    json.RawMessage
	ask       *ask
	reply     *rpc.Message // to the prompt
	withdrawn string       // id of a request of the agent's that it gave up
	decided   *decided
	rpc.Change
	sent     *sent // how sending the prompt went
	overflow bool
}

// sent says how sending the prompt went.
type sent struct{ err error }

// size is about how much memory an item takes.
func (i item) size() int { return len(i.update) + 256 }

// inbox is a queue of items. Any goroutine puts, one takes.
type inbox struct {
	ready chan struct{}

	mu    sync.Mutex
	items []item
	bytes int
	over  bool
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

func (b *inbox) put(i item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over && !i.Ended {
		return
	}
	if b.bytes += i.size(); b.bytes > maxInbox {
		b.over = true
		b.items, i = nil, item{overflow: true}
	}
	b.items = append(b.items, i)
	wake(b.ready)
}

func (b *inbox) take() []item {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items, b.bytes = nil, 0
	return items
}

// wake leaves a token in c unless there is one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
