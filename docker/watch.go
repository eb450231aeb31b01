package docker

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
)

// pauseWatch closes the connections into a container when the container is paused. With an open connection, an agent in
// a paused container would seem to be thinking. If the container stops or is removed, the engine itself closes the
// connections. Safe for concurrent use.
type pauseWatch struct {
	engine *Engine
	name   string

	mu     sync.Mutex
	conns  map[net.Conn]bool
	cancel context.CancelFunc // stops the goroutine that calls follow; nil if no connection is open
	wg     sync.WaitGroup
}

// watchConn closes c if the container is paused, until remove is called.
func (w *pauseWatch) watchConn(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[c] = true
	if w.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.wg.Go(func() {
		for ctx.Err() == nil {
			w.follow(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(refollowPause):
			}
		}
	})
}

func (w *pauseWatch) remove(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
	if len(w.conns) == 0 && w.cancel != nil {
		w.cancel()
		w.cancel = nil
	}
}

// refollowPause is the pause before ductor subscribes to the engine's events again, after the engine ended them.
const refollowPause = time.Second

// follow reads the engine's events until ctx ends or the engine ends them. The events do not include a pause before the
// subscription, so follow first checks the container.
func (w *pauseWatch) follow(ctx context.Context) {
	news, errs := w.engine.api.Events(ctx, events.ListOptions{Filters: filters.NewArgs(
		filters.Arg("type", string(events.ContainerEventType)), filters.Arg("container", w.name),
		filters.Arg("event", string(events.ActionPause)),
	)})
	if c, there, err := w.engine.inspect(ctx, w.name); err == nil && there && c.State.Paused {
		w.closeAll()
	}
	for {
		select {
		case <-news:
			w.closeAll()
		case <-errs:
			return
		}
	}
}

func (w *pauseWatch) closeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		_ = c.Close() // readers of the connection get an error, and then check the container
	}
}

// wait waits until follow has returned. The caller must have closed all connections.
func (w *pauseWatch) wait() { w.wg.Wait() }
