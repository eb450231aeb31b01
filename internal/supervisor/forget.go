package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Forget removes the output before offset from disk, with the file of standard error; who asks for that output later
// gets *LostError. Offsets stay as they are. Output that this client was not sent is never removed. Owners only.
func (r *Run) Forget(ctx context.Context, offset int64) error {
	if _, err := r.ask(ctx, request{Op: opForget, Offset: offset}); err != nil {
		return fmt.Errorf("forget output of run %s: %w", r.ID(), err)
	}
	return nil
}

// forgetOutput does what the client at p wants to have forgotten, unless the run was collected.
func (s *server) forgetOutput(p *place, offset int64) error {
	s.diskMu.Lock()
	defer s.diskMu.Unlock()
	if s.removed {
		return nil
	}
	return s.publisher.forget(p, offset)
}

func (f *publisher) forget(p *place, offset int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.owner != p { // what a dead owner still wanted takes nothing away from its successor
		return errNotOwner
	}
	err := errors.Join(f.out.forget(min(offset, p.offset)), f.err.forget())
	if f.ended {
		f.out.closeFile()
		f.err.close()
	}
	return err
}

// forget removes what is before offset. After an error some of that may still be on disk; the next call tries again.
func (s *journal) forget(offset int64) error {
	offset = min(offset, s.end)
	if offset <= 0 {
		return nil
	}
	s.forgotten = max(s.forgotten, offset)
	s.last.forget(offset)
	for i, seg := range s.segs {
		if seg.start < offset && (offset < seg.end || i == len(s.segs)-1) {
			if err := s.split(i, offset); err != nil {
				return err
			}
			break
		}
	}
	for len(s.segs) > 1 && s.segs[0].end <= offset {
		if err := s.dropOldest(); err != nil {
			return err
		}
	}
	return nil
}

// split moves what segment i has from offset on to a segment of its own. The last one gets an empty one, so that a
// reader of the directory finds where the output ends.
func (s *journal) split(i int, offset int64) error {
	tail, f, err := s.segs[i].moveTail(offset)
	if err != nil {
		return fmt.Errorf("split spool file: %w", err)
	}
	s.segs[i].end = min(s.segs[i].end, offset)
	s.segs = append(s.segs[:i+1], append([]segment{tail}, s.segs[i+1:]...)...)
	if i+2 < len(s.segs) {
		return f.Close()
	}
	s.closeFile()
	s.file = f
	return nil
}

// moveTail writes what the segment has from offset on to a file that gets the name of a segment once it is whole. The
// segment's own file stays as it is: its end is in both until it is removed.
func (s segment) moveTail(offset int64) (tail segment, f *os.File, err error) {
	tail = segment{dir: s.dir, start: offset, end: offset}
	temp := filepath.Join(s.dir, tailFile)
	if err := removeIfThere(temp); err != nil { // an earlier try left it
		return tail, nil, err
	}
	if f, err = os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return tail, nil, err
	}
	if tail.end, err = s.copyTail(f, offset); err == nil {
		tail.damaged = tail.end < s.end
		err = os.Rename(temp, tail.path())
	}
	if err != nil {
		_ = f.Close()
		return tail, nil, errors.Join(err, removeIfThere(temp))
	}
	return tail, f, nil
}

// copyTail gives the offset at which the file turned out to end.
func (s segment) copyTail(to *os.File, from int64) (end int64, err error) {
	buf := make([]byte, chunkSize)
	for from < s.end {
		n, err := s.readAt(buf, from)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return from, err
		}
		if n == 0 {
			break
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return from, err
		}
		from += int64(n)
	}
	return from, nil
}

// forget overwrites what is before offset.
func (r *ring) forget(offset int64) {
	size := int64(len(r.buf))
	from, to := r.start(), min(offset, r.end)
	if from >= to {
		return
	}
	r.from = to
	n := min(to-from, size-from%size)
	clear(r.buf[from%size:][:n])
	clear(r.buf[:to-from-n])
}

// forget removes the file. Memory keeps what it has, for clients; what comes from now on is written to a new file.
func (t *tail) forget() error {
	if t.total == t.forgotten {
		return nil
	}
	t.close()
	if err := removeIfThere(t.path); err != nil {
		return fmt.Errorf("forget standard error: %w", err)
	}
	t.forgotten = t.total
	return nil
}
