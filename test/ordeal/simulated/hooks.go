package simulated

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"ductor/test/ordeal/judge"
	"ductor/test/ordeal/scenario"
)

// Name and secret of the webhook in ductor's configuration.
const (
	hookName   = "ordeal"
	hookSecret = "ordeal-secret-of-the-webhook"
)

// hookListener is the listener for webhooks. It replaces a socket, because testing/synctest does not support sockets.
type hookListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newHookListener() *hookListener {
	return &hookListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *hookListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *hookListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (*hookListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8787} }

func (l *hookListener) dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// hookPatience limits how long a caller of the webhook waits for the response.
const hookPatience = 10 * time.Second

// deliver calls the webhook. If ductor accepts the call, deliver records the prompt as sent.
func (p *player) deliver(prompt scenario.Prompt) {
	l := p.current()
	sent := judge.Sent{
		Step: p.number, By: judge.Webhook, In: scenario.Place(scenario.Owner), Token: prompt.Token, At: time.Now(),
	}
	p.answered.Go(func() {
		code, err := l.deliver(prompt)
		p.log.note("webhook", "%s: %d, %v", prompt.Token, code, err)
		if code != http.StatusAccepted {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.notes = append(p.notes, func() { p.evidence.Sent = append(p.evidence.Sent, sent) })
	})
}

// deliver calls the webhook and returns the HTTP status. It returns 0 if ductor died before it answered.
func (l *life) deliver(prompt scenario.Prompt) (code int, err error) {
	ctx, cancel := context.WithTimeout(l.alive, hookPatience)
	defer cancel()
	body := strings.NewReader(prompt.Script(effect))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://ductor.invalid/hooks/"+hookName, body)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+hookSecret)
	r.Header.Set("Idempotency-Key", string(prompt.Token))
	// Use ctx, which ends with the request. The context that Transport passes to dial does not end with the request.
	dial := func(context.Context, string, string) (net.Conn, error) { return l.launcher.hooks.dial(ctx) }
	wire := &http.Transport{DisableKeepAlives: true, DialContext: dial}
	answer, err := wire.RoundTrip(r)
	if err != nil {
		return 0, fmt.Errorf("call the webhook: %w", err)
	}
	_ = answer.Body.Close() // the body is empty
	if l.dead() {
		return 0, errDead
	}
	return answer.StatusCode, nil
}
