package docker

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// handledEngine returns an engine whose requests a function handles.
func handledEngine(t *testing.T, handle http.HandlerFunc) *Engine {
	t.Helper()
	dir, err := os.MkdirTemp("", "dw") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // at worst a leftover in the temporary directory
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: handle}}
	server.Start()
	t.Cleanup(server.Close)
	return connectTo(t, EngineOptions{Host: "unix://" + dir + "/sock"})
}

// A pause closes the connections into a container, even if it happens before ductor has subscribed to the engine's
// events, or after the engine has ended them once.
func TestPauseIsNoticed(t *testing.T) {
	t.Parallel()
	const pause = `{"Type":"container","Action":"pause"}`
	for name, c := range map[string]struct {
		state string
		ends  int64 // how many subscriptions the engine ends
		event string
	}{
		"before the subscription":    {state: `{"Paused":true}`},
		"after the events ended":     {state: `{"Running":true}`, ends: 1, event: pause},
		"during a subscription":      {state: `{"Running":true}`, event: pause},
		"while the events had ended": {state: `{"Paused":true}`, ends: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var subscriptions atomic.Int64
			w := &pauseWatch{name: "box", conns: map[net.Conn]bool{}}
			w.engine = handledEngine(t, func(out http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/containers/box/json"):
					state := c.state
					if subscriptions.Load() <= c.ends {
						state = `{"Running":true}`
					}
					_, _ = io.WriteString(out, `{"State":`+state+`}`) // if it fails, the connection is not closed
				case strings.HasSuffix(r.URL.Path, "/events"):
					if subscriptions.Add(1) <= c.ends {
						return
					}
					_, _ = io.WriteString(out, c.event)
					_ = http.NewResponseController(out).Flush()
					<-r.Context().Done()
				}
			})
			ours, theirs := net.Pipe()
			w.watchConn(ours)
			if err := theirs.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
			if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("the connection is not closed: %v", err)
			}
			w.remove(ours)
			w.wait()
		})
	}
}
