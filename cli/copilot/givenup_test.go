package copilot

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"ductor/cli"
	"ductor/cli/clitest"
	"ductor/cli/shared"
)

// launchers starts one peer after the other.
type launchers struct {
	peerLauncher
	mu   sync.Mutex
	next []*peer
}

func (l *launchers) Start(context.Context, cli.Command) (cli.Process, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.next[0]
	l.next = l.next[1:]
	return p, nil
}

// A process that hangs for one session is stopped. A turn of another session that is about to start in it runs in the
// next process.
func TestATurnThatBeginsAsItsProcessIsGivenUp(t *testing.T) {
	for name, asks := range map[string]string{"in a session that is there": "session.mode.set", "in one that is opened": "session.create"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, deaf := newPeer(t, nil)
				p, another := newPeer(t, nil)
				o := p.opts
				o.Launcher = &launchers{next: []*peer{deaf, another}}
				p = New(o)
				req := cli.Request{Prompt: "hello"}
				one := clitest.Open(t, p, cli.Live, req)
				two := clitest.Open(t, p, cli.Live, req)
				if asks == "session.create" {
					two = live{shared.NewSession(p.pool, &p.live)}
					t.Cleanup(func() { _ = two.Close(context.Background()) })
				}
				deaf.answer = func(p *peer, m message) bool { return never(p, m) || m.Method == asks }
				ctx, cancel := context.WithCancelCause(t.Context())
				first := begin(ctx, one, req)
				req.Permission = cli.Bypass
				second := begin(t.Context(), two, req)
				synctest.Wait()
				cancel(cli.ErrAborted)
				if r := first.result(t); !r.Aborted {
					t.Errorf("%+v, %+v", r, r.Err)
				}
				if r := second.result(t); r.Err != nil || r.Text != "Hi." {
					t.Errorf("%+v, %+v", r, r.Err)
				}
			})
		})
	}
}
