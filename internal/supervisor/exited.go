package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"
)

// exitedRun speaks for a run whose supervisor is gone, from what is on the disk.
type exitedRun struct {
	*proxy
	id   string
	disk *diskReader

	mu    sync.Mutex
	cond  *sync.Cond
	limit int64 // output up to here may be sent; negative when the client left
}

// serveExited serves a client of a run that has no supervisor any more.
func (p *proxy) serveExited(e proxyRequest) error {
	rec, err := p.env.record(e.Run)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p.w.json(kindRefused, refusal(err, p.proto))
	}
	rec.ID = e.Run
	x := &exitedRun{proxy: p, id: e.Run, disk: newDiskReader(p.env.path(e.Run), e.Hello.Offset)}
	x.cond, x.limit = sync.NewCond(&x.mu), e.Hello.Offset+e.Hello.Window
	if x.disk.err != nil {
		return p.w.json(kindRefused, refusal(x.disk.err, p.proto))
	}
	if err := p.w.json(kindWelcome, welcome{Protocol: p.proto, Info: p.env.remains(rec)}); err != nil {
		return err
	}
	told := make(chan error, 1)
	if e.Hello.Role == roleAsk {
		told <- nil
	} else {
		go func() { told <- x.tell(p.env.lastStatus(e.Run)) }()
	}
	err = x.listen()
	x.allow(-1)
	return errors.Join(err, <-told)
}

// tell sends how the run ended, and the output as far as the client wants it.
func (x *exitedRun) tell(status Status) error {
	if err := x.w.json(kindExit, status); err != nil {
		return err
	}
	buf := make([]byte, chunkSize/2)
	for {
		at, room := x.await()
		if room <= 0 {
			return nil
		}
		n, err := x.disk.Read(buf[:min(int64(len(buf)), room)])
		var lost *LostError
		switch {
		case errors.As(err, &lost):
			err = x.w.json(kindLost, lossNote{From: lost.From, To: lost.To, Damaged: lost.Damaged})
		case errors.Is(err, io.EOF):
			raw, err := json.Marshal(status)
			if err != nil {
				return err
			}
			return x.w.marked(kindEnd, at, raw)
		case err == nil:
			err = x.w.marked(kindOutput, at, buf[:n])
		}
		if err != nil {
			return err
		}
	}
}

// await gives the offset that comes next and how much may be sent from there; nothing when the client left.
func (x *exitedRun) await() (at, room int64) {
	at, _ = x.disk.position()
	x.mu.Lock()
	defer x.mu.Unlock()
	for x.limit >= 0 && x.limit <= at {
		x.cond.Wait()
	}
	return at, x.limit - at
}

func (x *exitedRun) allow(limit int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if limit < 0 || x.limit >= 0 && limit > x.limit {
		x.limit = limit
	}
	x.cond.Broadcast()
}

// listen does what can be done for a dead run, until the client leaves.
func (x *exitedRun) listen() error {
	for {
		k, payload, err := x.r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch k {
		case kindWindow:
			if limit, _, err := cutMark(payload); err == nil {
				x.allow(limit)
			}
		case kindInput:
			if seq, _, err := cutMark(payload); err == nil {
				_ = x.w.json(kindReply, reply{Seq: uint64(seq), Error: ErrGone.Error()})
			}
		case kindRequest:
			var q request
			if err := json.Unmarshal(payload, &q); err != nil {
				return fmt.Errorf("read request: %w", err)
			}
			if err := x.w.json(kindReply, x.answer(q)); err != nil {
				return err
			}
		}
	}
}

func (x *exitedRun) answer(q request) reply {
	grace := time.Duration(q.Grace)
	ctx, cancel := context.WithTimeout(context.Background(), proxyWait+grace)
	defer cancel()
	err := ErrGone
	a := reply{Seq: q.Seq}
	switch q.Op {
	case opStop:
		err = x.env.endLeft(ctx, x.id, grace)
	case opCollect:
		err = x.env.collect(ctx, x.id)
	case opInfo:
		info := x.env.look(ctx, x.id)
		a.Info, err = &info, nil
	}
	if err != nil {
		a.Error, a.Errno = err.Error(), errnoOf(err)
	}
	return a
}
