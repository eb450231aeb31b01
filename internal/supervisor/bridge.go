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

// errandWait is how long a bridge may take over one errand.
const errandWait = 30 * time.Second

// bridge is a client of the runs beside it, on behalf of one that is elsewhere and talks over the bridge's
// standard input and output. It keeps nothing: it ends when they do.
type bridge struct {
	ground *ground
	broken error // why there is no ground
	proto  Protocol
	r      *frameReader
	w      frameWriter
}

// runBridge does errands until it is connected to a run, and then is a pipe; or until in ends.
func runBridge(a arguments, in io.Reader, out io.Writer) error {
	b := &bridge{proto: a.proto, r: newFrameReader(in), w: frameWriter{w: out}}
	opts := Options{Protocol: a.proto}
	if before, ok := expend(); ok {
		opts.Command = append(selfCommand(), oomArg+strconv.Itoa(before))
	}
	b.ground, b.broken = openGround(a.root, opts)
	if b.broken == nil {
		defer b.ground.close()
	}
	for {
		k, payload, err := b.r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read errand: %w", err)
		}
		if k != kindErrand {
			continue
		}
		var e errand
		if err := json.Unmarshal(payload, &e); err != nil {
			return fmt.Errorf("read errand: %w", err)
		}
		if e.Op == errandStart || e.Op == errandJoin {
			return b.connect(e)
		}
		if err := b.w.json(kindOutcome, b.do(e)); err != nil {
			return err
		}
	}
}

// do does an errand that connects nobody.
func (b *bridge) do(e errand) outcome {
	o, err := b.try(e)
	if err != nil {
		o.refused = refusal(err, b.proto)
	}
	o.Protocol = b.proto
	return o
}

func (b *bridge) try(e errand) (o outcome, err error) {
	if err = b.fit(e); err != nil {
		return o, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), errandWait+e.Grace)
	defer cancel()
	switch e.Op {
	case errandWarm:
		err = b.ground.brood.ready()
	case errandList:
		o.Runs, err = b.ground.list(ctx)
	case errandKill:
		err = b.ground.kill(ctx, e.Run)
	case errandEnd:
		err = b.ground.endLeft(ctx, e.Run, e.Grace)
	case errandCollect:
		err = b.ground.collect(ctx, e.Run)
	case errandPrune:
		o.Count, err = b.ground.prune(ctx, e.Age)
	case errandLook:
		o.Path, err = b.ground.lookPath(ctx, e.Name)
	case errandSince:
		o.Since, err = b.ground.since(ctx, e.Now)
	default:
		err = fmt.Errorf("this bridge cannot %q", e.Op)
	}
	return o, err
}

// fit says what keeps the bridge from an errand, whichever it is.
func (b *bridge) fit(e errand) error {
	if _, err := agree(e.Protocol, b.proto); err != nil {
		return err
	}
	return b.broken
}

// connect does an errand that makes a pipe of the bridge.
func (b *bridge) connect(e errand) error {
	l, w, err := b.reach(e)
	if errors.Is(err, ErrGone) && e.Op == errandJoin {
		return b.exhume(e)
	}
	if err != nil {
		return b.w.json(kindRefused, refusal(err, b.proto))
	}
	defer l.close()
	if err := b.w.json(kindWelcome, w); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGTERM) // when the place ends, the run has something to say first
	go func() {                    // it ends with the process at the latest
		_, _ = io.Copy(l.conn, b.r.r)
		l.close() // the client left
	}()
	_, err = io.Copy(b.w.w, l.r.r)
	return err
}

func (b *bridge) reach(e errand) (*link, welcome, error) {
	if err := b.fit(e); err != nil {
		return nil, welcome{}, err
	}
	if e.Hello == nil || e.Op == errandStart && e.Hello.Spec == nil {
		return nil, welcome{}, errors.New("the errand does not say what to connect to")
	}
	ctx, cancel := context.WithTimeout(context.Background(), errandWait)
	defer cancel()
	if e.Op == errandStart {
		return b.ground.start(ctx, *e.Hello)
	}
	return b.ground.join(ctx, Revive, e.Run, *e.Hello)
}
