package supervisor

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	journalParts = 8         // the ring on disk is this many segments
	memorySize   = 128 << 10 // and this much is in memory, for a disk that fails and for speed
	chunkSize    = memorySize / 2
	retryAppend  = time.Second // between two tries to write to a disk that failed
)

// journal is the output so far: a ring of segments on disk and the last of it in memory. It has no lock.
type journal struct {
	dir  string
	max  int64
	now  func() time.Time
	segs []segment // in order; there are gaps where the disk failed
	file *os.File  // the last segment's, or nil
	last ring
	end  int64

	forgotten int64 // what is before is gone because it was asked to be

	failure error // the last one of the disk, nil after a success
	retryAt time.Time
}

// newJournal begins with first, the file of the empty segment at 0.
func newJournal(dir string, maxBytes int64, now func() time.Time, first *os.File) *journal {
	return &journal{dir: dir, max: maxBytes, now: now, last: newRing(memorySize), file: first, segs: []segment{{dir: dir}}}
}

// openJournal reads a journal whose supervisor is gone.
func openJournal(dir string) (*journal, []string, error) {
	segs, strange, err := listSegments(dir)
	if err != nil {
		return nil, nil, err
	}
	s := &journal{dir: dir, segs: segs, last: newRing(0)}
	if n := len(segs); n > 0 {
		s.end = segs[n-1].end
	}
	s.last.end = s.end
	return s, strange, nil
}

// append takes p, at most chunkSize of it. It never fails: what the disk does not take is in memory for a while.
func (s *journal) append(p []byte) {
	if s.failure == nil || !s.now().Before(s.retryAt) {
		s.store(p)
	}
	s.last.append(p)
	s.end += int64(len(p))
}

// store writes p to disk, all or the beginning of it.
func (s *journal) store(p []byte) {
	at := s.end
	for len(p) > 0 {
		n, err := s.write(p, at)
		p, at = p[n:], at+int64(n)
		if err == nil {
			s.failure = nil
			continue
		}
		s.closeFile()
		if full(err) && len(s.segs) > 1 { // our own past makes room for the end
			if s.dropOldest() == nil {
				continue
			}
		}
		s.failure, s.retryAt = err, s.now().Add(retryAppend)
		return
	}
}

// full says whether removing a file may help.
func full(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// write puts some of p into the last segment, a new one if that is full.
func (s *journal) write(p []byte, at int64) (int, error) {
	part := s.max / journalParts
	if s.file == nil || s.segs[len(s.segs)-1].size() >= part || !s.intact(at) {
		if err := s.roll(at); err != nil {
			return 0, err
		}
	}
	seg := &s.segs[len(s.segs)-1]
	n, err := s.file.Write(p[:min(int64(len(p)), part-seg.size())])
	seg.end += int64(n)
	if err != nil {
		return n, fmt.Errorf("write spool: %w", err)
	}
	return n, nil
}

// intact says whether the open file is what we left: not cut, not removed.
func (s *journal) intact(at int64) bool {
	seg := &s.segs[len(s.segs)-1]
	var stat unix.Stat_t
	raw, err := s.file.SyscallConn()
	if err != nil {
		return false
	}
	statErr := errors.New("not asked")
	_ = raw.Control(func(fd uintptr) { statErr = unix.Fstat(int(fd), &stat) })
	if statErr != nil || stat.Nlink == 0 {
		return false
	}
	if stat.Size < seg.size() {
		seg.end, seg.damaged = seg.start+stat.Size, true
	}
	return stat.Size == seg.size() && seg.end == at
}

// roll begins a new segment and drops old ones beyond the limit.
func (s *journal) roll(at int64) error {
	s.closeFile()
	seg := segment{dir: s.dir, start: at, end: at}
	if n := len(s.segs); n > 0 && s.segs[n-1].size() == 0 { // a failed try left it
		if err := removeIfThere(s.segs[n-1].path()); err != nil {
			return fmt.Errorf("drop empty spool file: %w", err)
		}
		s.segs = s.segs[:n-1]
	}
	f, err := seg.create()
	if err != nil {
		return fmt.Errorf("make spool file: %w", err)
	}
	s.file, s.segs = f, append(s.segs, seg)
	for len(s.segs) > 1 && s.stored()+s.max/journalParts > s.max {
		if err := s.dropOldest(); err != nil {
			return err
		}
	}
	return nil
}

func (s *journal) dropOldest() error {
	if err := removeIfThere(s.segs[0].path()); err != nil {
		return fmt.Errorf("drop old spool file: %w", err)
	}
	s.segs = append(s.segs[:0], s.segs[1:]...)
	return nil
}

func (s *journal) closeFile() {
	if s.file != nil {
		_ = s.file.Close() // written data is in the kernel; there is nothing to flush
		s.file = nil
	}
}

// stored is how many bytes are on disk.
func (s *journal) stored() int64 {
	var n int64
	for _, seg := range s.segs {
		n += seg.size()
	}
	return n
}

// missing is how many bytes of the past are neither on disk nor in memory, and were not forgotten.
func (s *journal) missing() int64 {
	var n int64
	for at := s.forgotten; at < s.end; {
		next, _ := s.available(at)
		n += next - at
		at = s.contiguous(next)
	}
	return n
}

// available finds the first offset from at on that can be read. damaged says whether what lies between
// was on disk once.
func (s *journal) available(at int64) (next int64, damaged bool) {
	if at >= s.last.start() {
		return at, false
	}
	for _, seg := range s.segs {
		if at < seg.end {
			return min(max(at, seg.start), max(at, s.last.start())), damaged
		}
		damaged = at == seg.end && seg.damaged
	}
	return min(s.last.start(), s.end), damaged
}

// contiguous finds where the data that begins at an available offset ends.
func (s *journal) contiguous(at int64) int64 {
	if at >= s.last.start() {
		return s.end
	}
	at = s.onDisk(at)
	if at >= s.last.start() {
		return s.end
	}
	return at
}

// onDisk finds the first offset from at on that is not on disk.
func (s *journal) onDisk(at int64) int64 {
	for _, seg := range s.segs {
		if seg.start <= at && at < seg.end {
			at = seg.end
		}
	}
	return at
}

// wouldLose says whether n more bytes take something away from a reader at offset.
func (s *journal) wouldLose(offset int64, n int) bool {
	if gap := s.onDisk(offset); gap < s.end && s.end+int64(n)-memorySize > gap {
		return true
	}
	inMemory := s.end+int64(n)-memorySize <= offset
	onDisk := s.end+int64(n)-offset <= s.max-2*(s.max/journalParts)
	return !inMemory && !onDisk
}

// readAt reads from an available offset. It gives 0 when the file turned out to be shorter: ask available again.
func (s *journal) readAt(p []byte, offset int64) int {
	if offset >= s.last.start() && offset < s.last.end {
		return s.last.readAt(p, offset)
	}
	for i := range s.segs {
		seg := &s.segs[i]
		if offset < seg.start || offset >= seg.end {
			continue
		}
		n, err := seg.readAt(p, offset)
		if n == 0 || err != nil {
			seg.end, seg.damaged = offset, true
			return 0
		}
		return n
	}
	return 0
}
