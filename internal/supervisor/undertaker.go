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

// undertaker speaks for a run whose supervisor is gone, from what is on the disk.
type undertaker struct {
	*bridge
	id   string
	disk *diskReader

	mu    sync.Mutex
	cond  *sync.Cond
	limit int64 // output up to here may be sent; negative when the client left
}

// exhume serves a client of a run that has no supervisor any more.
func (b *bridge) exhume(e errand) error {
	rec, err := b.ground.record(e.Run)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return b.w.json(kindRefused, refusal(err, b.proto))
	}
	rec.ID = e.Run
	u := &undertaker{bridge: b, id: e.Run, disk: newDiskReader(b.ground.path(e.Run), e.Hello.Offset)}
	u.cond, u.limit = sync.NewCond(&u.mu), e.Hello.Offset+e.Hello.Window
	if u.disk.err != nil {
		return b.w.json(kindRefused, refusal(u.disk.err, b.proto))
	}
	if err := b.w.json(kindWelcome, welcome{Protocol: b.proto, Info: b.ground.remains(rec)}); err != nil {
		return err
	}
	told := make(chan error, 1)
	if e.Hello.Role == roleAsk {
		told <- nil
	} else {
		go func() { told <- u.tell(b.ground.lastStatus(e.Run)) }()
	}
	err = u.listen()
	u.allow(-1)
	return errors.Join(err, <-told)
}

// tell sends how the run ended, and the output as far as the client wants it.
func (u *undertaker) tell(status Status) error {
	if err := u.w.json(kindExit, status); err != nil {
		return err
	}
	buf := make([]byte, chunkSize/2)
	for {
		at, room := u.await()
		if room <= 0 {
			return nil
		}
		n, err := u.disk.Read(buf[:min(int64(len(buf)), room)])
		var lost *LostError
		switch {
		case errors.As(err, &lost):
			err = u.w.json(kindLost, lossNote{From: lost.From, To: lost.To, Damaged: lost.Damaged})
		case errors.Is(err, io.EOF):
			raw, err := json.Marshal(status)
			if err != nil {
				return err
			}
			return u.w.marked(kindEnd, at, raw)
		case err == nil:
			err = u.w.marked(kindOutput, at, buf[:n])
		}
		if err != nil {
			return err
		}
	}
}

// await gives the offset that comes next and how much may be sent from there; nothing when the client left.
func (u *undertaker) await() (at, room int64) {
	at, _ = u.disk.position()
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.limit >= 0 && u.limit <= at {
		u.cond.Wait()
	}
	return at, u.limit - at
}

func (u *undertaker) allow(limit int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if limit < 0 || u.limit >= 0 && limit > u.limit {
		u.limit = limit
	}
	u.cond.Broadcast()
}

// listen does what can be done for a dead run, until the client leaves.
func (u *undertaker) listen() error {
	for {
		k, payload, err := u.r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch k {
		case kindWindow:
			if limit, _, err := cutMark(payload); err == nil {
				u.allow(limit)
			}
		case kindInput:
			if seq, _, err := cutMark(payload); err == nil {
				_ = u.w.json(kindReply, reply{Seq: uint64(seq), Error: ErrGone.Error()})
			}
		case kindRequest:
			var q request
			if err := json.Unmarshal(payload, &q); err != nil {
				return fmt.Errorf("read request: %w", err)
			}
			if err := u.w.json(kindReply, u.answer(q)); err != nil {
				return err
			}
		}
	}
}

func (u *undertaker) answer(q request) reply {
	grace := time.Duration(q.Grace)
	ctx, cancel := context.WithTimeout(context.Background(), errandWait+grace)
	defer cancel()
	err := ErrGone
	a := reply{Seq: q.Seq}
	switch q.Op {
	case opStop:
		err = u.ground.endLeft(ctx, u.id, grace)
	case opCollect:
		err = u.ground.collect(ctx, u.id)
	case opInfo:
		info := u.ground.look(ctx, u.id)
		a.Info, err = &info, nil
	}
	if err != nil {
		a.Error, a.Errno = err.Error(), errnoOf(err)
	}
	return a
}
