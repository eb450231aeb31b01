package docker

import (
	"context"
	"net"
	"sync"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// watch cuts the connections into a container when it is paused: else they would be silent, like an agent that
// thinks. Every other end shows on the connection. Safe for concurrent use.
type watch struct {
	engine *Engine
	name   string

	mu     sync.Mutex
	conns  map[net.Conn]bool
	cancel context.CancelFunc // of the watching; nil when nothing is open
	wg     sync.WaitGroup
}

// add watches over a connection until it is removed.
func (w *watch) add(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[c] = true
	if w.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.wg.Go(func() {
		defer cancel()
		w.follow(ctx)
	})
}

func (w *watch) remove(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
	if len(w.conns) == 0 && w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}

// follow reads the engine's events until they end, as they do with the engine.
func (w *watch) follow(ctx context.Context) {
	news, errs := w.engine.api.Events(ctx, events.ListOptions{Filters: filters.NewArgs(
		filters.Arg("type", string(events.ContainerEventType)), filters.Arg("container", w.name), filters.Arg("event", string(events.ActionPause)),
	)})
	for {
		select {
		case <-news:
			w.cut()
		case <-errs:
			return
		}
	}
}

// cut closes every connection.
func (w *watch) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		_ = c.Close() // its reader learns why
	}
}

// wait returns when the watching has ended. Every connection is closed by then.
func (w *watch) wait() { w.wg.Wait() }
