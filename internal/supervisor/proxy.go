package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// proxyWait is how long a proxy may take over one request.
const proxyWait = 30 * time.Second

// proxy is a client of the runs beside it, on behalf of one that is elsewhere and talks over the proxy's
// standard input and output. It keeps nothing: it ends when they do.
type proxy struct {
	env    *localEnv
	broken error // why there is no environment
	proto  Protocol
	r      *frameReader
	w      frameWriter
}

// runProxy answers requests until it is connected to a run, and then is a pipe; or until in ends.
func runProxy(a arguments, in io.Reader, out io.Writer) error {
	p := &proxy{proto: a.proto, r: newFrameReader(in), w: frameWriter{w: out}}
	opts := Options{Protocol: a.proto}
	if before, ok := expend(); ok {
		opts.Command = append(selfCommand(), oomArg+strconv.Itoa(before))
	}
	p.env, p.broken = openLocalEnv(a.root, opts)
	if p.broken == nil {
		defer p.env.close()
	}
	for {
		k, payload, err := p.r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read request: %w", err)
		}
		if k != kindProxyRequest {
			continue
		}
		var e proxyRequest
		if err := json.Unmarshal(payload, &e); err != nil {
			return fmt.Errorf("read request: %w", err)
		}
		if e.Op == proxyStart || e.Op == proxyJoin {
			return p.connect(e)
		}
		if err := p.w.json(kindOutcome, p.do(e)); err != nil {
			return err
		}
	}
}

// do answers a request that makes no connection.
func (p *proxy) do(e proxyRequest) outcome {
	o, err := p.try(e)
	if err != nil {
		o.refused = refusal(err, p.proto)
	}
	o.Protocol = p.proto
	return o
}

func (p *proxy) try(e proxyRequest) (o outcome, err error) {
	if err = p.fit(e); err != nil {
		return o, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), proxyWait+e.Grace)
	defer cancel()
	switch e.Op {
	case proxyWarm:
		err = p.env.pool.ready()
	case proxyList:
		o.Runs, err = p.env.list(ctx)
	case proxyKill:
		err = p.env.kill(ctx, e.Run)
	case proxyEnd:
		err = p.env.endLeft(ctx, e.Run, e.Grace)
	case proxyCollect:
		err = p.env.collect(ctx, e.Run)
	case proxyPrune:
		o.Count, err = p.env.prune(ctx, e.Age)
	case proxyLook:
		o.Path, err = p.env.lookPath(ctx, e.Name)
	default:
		err = fmt.Errorf("this proxy cannot %q", e.Op)
	}
	return o, err
}

// fit says what keeps the proxy from a request, whichever it is.
func (p *proxy) fit(e proxyRequest) error {
	if _, err := agree(e.Protocol, p.proto); err != nil {
		return err
	}
	return p.broken
}

// connect answers a request that makes the proxy a pipe.
func (p *proxy) connect(e proxyRequest) error {
	l, w, err := p.reach(e)
	if errors.Is(err, ErrGone) && e.Op == proxyJoin {
		return p.serveExited(e)
	}
	if err != nil {
		return p.w.json(kindRefused, refusal(err, p.proto))
	}
	defer l.close()
	if err := p.w.json(kindWelcome, w); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGTERM) // when the place ends, the run has something to say first
	go func() {                    // it ends with the process at the latest
		_, _ = io.Copy(l.conn, p.r.r)
		l.close() // the client left
	}()
	_, err = io.Copy(p.w.w, l.r.r)
	return err
}

func (p *proxy) reach(e proxyRequest) (*link, welcome, error) {
	if err := p.fit(e); err != nil {
		return nil, welcome{}, err
	}
	if e.Hello == nil || e.Op == proxyStart && e.Hello.Spec == nil {
		return nil, welcome{}, errors.New("the request does not say what to connect to")
	}
	ctx, cancel := context.WithTimeout(context.Background(), proxyWait)
	defer cancel()
	if e.Op == proxyStart {
		return p.env.start(ctx, *e.Hello)
	}
	return p.env.join(ctx, Revive, e.Run, *e.Hello)
}
