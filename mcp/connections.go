package mcp

import (
	"fmt"
	"sync"

	"ductor/cli"
	"ductor/orchestrator"
)

// Maximum numbers of connections from one environment.
const (
	maxGreeting = 64 // connections whose clients have not sent a valid token yet
	maxRefused  = 64 // rejected connections whose clients have not disconnected yet
	maxJoined   = 32 // connections of the agents in one conversation
)

var errTooManyClients = fmt.Errorf("the agents of this chat have %d connections, which is the limit; close one",
	maxJoined)

// joinKey identifies the agents of a conversation that run in one environment.
type joinKey struct {
	conversation orchestrator.ConversationID
	sandbox      cli.Sandbox
}

// connections counts open connections by their origin, so that no origin can use up the connections of other origins.
// Safe for concurrent use.
type connections[K comparable] struct {
	mu   sync.Mutex
	open map[K]int
}

// add counts a connection. The caller must call done when the connection no longer counts. add returns false if the
// origin already has the maximum number of connections.
func (c *connections[K]) add(from K, most int) (done func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[from] >= most {
		return nil, false
	}
	if c.open == nil {
		c.open = map[K]int{}
	}
	c.open[from]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open[from]--; c.open[from] == 0 {
			delete(c.open, from)
		}
	}, true
}
