package runner

import (
	"maps"
	"slices"
	"sync"
)

// clients are the connected clients of a runner. Safe for concurrent use.
type clients struct {
	mu    sync.Mutex
	conns map[*conn]bool // nil after close
}

// add adds a client. It returns false after close.
func (c *clients) add(client *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conns == nil {
		return false
	}
	c.conns[client] = true
	return true
}

func (c *clients) remove(client *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, client)
}

func (c *clients) contains(client *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns[client]
}

func (c *clients) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns)
}

func (c *clients) broadcast(r reply) {
	c.mu.Lock()
	conns := slices.Collect(maps.Keys(c.conns))
	c.mu.Unlock()
	for _, client := range conns {
		client.sendReply(r)
	}
}

// close closes all connections, and rejects further clients.
func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for client := range c.conns {
		_ = client.conn.Close()
	}
	c.conns = nil
}
