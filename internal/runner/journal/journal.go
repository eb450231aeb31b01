// Package journal stores the output of an agent in two files, and limits their disk space.
package journal

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// MinSize is the smallest useful limit of output, in bytes. If the disk is full and no client owns the run, the
	// Journal deletes all output except the last MinSize bytes.
	MinSize = 4 << 10

	// ahead is the number of bytes that a Journal reserves on the disk beyond the end of the output. A disk that
	// becomes full then does not interrupt a write of the agent.
	ahead = 4 << 20
	// If less than aheadLow bytes are still reserved, the Journal reserves more. If it cannot reserve even aheadLow/4
	// bytes, the agent must end.
	aheadLow = 2 << 20
)

// Journal is an agent's standard output and standard error on disk. The agent itself writes to the files, so the
// Journal knows only the sizes that the last Check found. Freed output becomes a hole in the file, so offsets stay
// valid. Safe for concurrent use.
type Journal struct {
	out *os.File

	mu        sync.Mutex // guards all fields below
	stderr    tail
	size      int64 // size of the output when the journal was last checked
	allocated int64 // end of the reserved disk space, as an offset in the output
	freed     int64 // output before this offset was deleted
	reported  int64 // offset that the last TakeFreed returned
	read      int64 // the owner has read the output before this offset
	times     timeline
	room      room
}

// room is the state of a journal's disk space.
type room int

const (
	plenty   room = iota
	scarce        // the disk is full
	released      // the files are closed; their descriptor numbers may belong to other files
)

// Open opens or creates the files with the given paths. For a new journal, flags contains os.O_CREATE. Open then
// reserves disk space. Because of the reserved space, the agent can still write output after it has filled the disk.
func Open(out, stderr string, flags int) (j *Journal, err error) {
	j = &Journal{times: timeline{every: timeEvery}}
	all := flags | os.O_RDWR | os.O_APPEND | unix.O_NOFOLLOW
	if j.out, err = os.OpenFile(out, all, 0o600); err != nil {
		return nil, err
	}
	if j.stderr.file, err = os.OpenFile(stderr, all, 0o600); err != nil {
		return nil, errors.Join(err, j.out.Close())
	}
	if flags&os.O_CREATE != 0 && j.reserve(ahead) != nil {
		j.reserveSome()
	}
	return j, nil
}

// Restore sets what an earlier process recorded: times contains the times of the output, and freed is the number of
// bytes that were deleted from the beginning of the output.
func (j *Journal) Restore(times []int64, freed int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.times.entries, j.freed, j.reported = times, freed, freed
}

// Files returns the files to which the agent writes.
func (j *Journal) Files() (out, stderr *os.File) { return j.out, j.stderr.file }

// HasReserve reports whether the space for the next output is reserved. It is false if the disk is almost full.
func (j *Journal) HasReserve() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.allocated-j.size >= ahead
}

// Growth is the result of a Check.
type Growth struct {
	Bytes  int64 // number of bytes written since the last Check
	Scarce bool  // the disk is full
	Time   *Time // time of the new output if Check has recorded it; nil otherwise
}

// Time is the time at which the agent printed the output at an offset, in microseconds since 1970.
type Time struct{ Offset, At int64 }

// Check detects output since the last Check. It takes the time of the output from the file's modification time.
func (j *Journal) Check() (g Growth) {
	out, outErr := j.out.Stat()
	stderr, errErr := j.stderr.file.Stat()
	j.mu.Lock()
	defer j.mu.Unlock()
	g.Scarce = j.room == scarce
	if outErr == nil && out.Size() != j.size {
		g.Bytes = max(out.Size()-j.size, 1)
		if out.Size() > j.size {
			g.Time = j.times.add(j.size, out.ModTime())
		}
		j.size = out.Size()
		j.allocated = max(j.allocated, j.size)
	}
	if errErr == nil {
		g.Bytes += j.stderr.grow(stderr.Size())
	}
	return g
}

// EnforceLimit frees old output so that at most limit bytes remain. If a client owns the run, EnforceLimit does not
// free output that the client has not read. Afterwards, EnforceLimit reserves space for more output. It returns true if
// the disk is full and nothing more can be freed.
func (j *Journal) EnforceLimit(limit int64, owned bool) (full bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.room == released {
		return false
	}
	bound := j.size - limit
	if owned {
		bound = min(bound, j.read)
	}
	j.free(bound)
	j.stderr.enforceLimit()
	if j.allocated-j.size >= aheadLow {
		return false
	}
	err := j.reserve(ahead)
	// On a full disk, free more: all output that the owner has read or, without an owner, all output.
	if err != nil && (owned && j.read > j.freed || !owned && j.size > j.freed) {
		if owned {
			j.free(j.read)
		} else {
			j.free(j.size - MinSize)
		}
		err = j.reserve(ahead)
	}
	if j.room = plenty; errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		j.room = scarce
		j.reserveSome()
	}
	return j.room == scarce && j.allocated-j.size < aheadLow/4
}

func (j *Journal) reserve(n int64) error {
	err := unix.Fallocate(int(j.out.Fd()), unix.FALLOC_FL_KEEP_SIZE, j.size, n)
	// Some file systems do not support fallocate.
	if err == nil || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		j.allocated = max(j.allocated, j.size+n)
		return nil
	}
	return err
}

// reserveSome reserves as much space as possible on a disk with less than `ahead` bytes left. If fewer than aheadLow/4
// bytes are left, it reserves nothing, because so little space would not help an agent.
func (j *Journal) reserveSome() {
	for room := int64(ahead / 2); room >= aheadLow/4 && j.reserve(room) != nil; room /= 2 {
	}
}

func (j *Journal) free(offset int64) { j.freed = punch(j.out, j.freed, offset) }

// punch frees the disk space of a part of a file, which makes this part a hole. It returns the end of the freed part.
func punch(f *os.File, from, to int64) (done int64) {
	if to <= from || unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from,
		to-from) != nil {
		return from
	}
	return to
}

// FreeOutput frees the output before offset, and all of standard error.
func (j *Journal) FreeOutput(offset int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.room == released {
		return
	}
	j.free(min(offset, j.End()))
	j.stderr.freeAll()
}

// SetRead records how far the owner has read.
func (j *Journal) SetRead(offset int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.read = offset
}

// Lag returns the number of bytes that the agent has written and the client has not read.
func (j *Journal) Lag() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size - j.read
}

// End returns the current size of the output.
func (j *Journal) End() int64 {
	info, err := j.out.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// Stderr returns the last bytes of standard error, at most StderrTail.
func (j *Journal) Stderr() string { return j.stderr.text() }

// Times returns pairs of numbers: an offset in the output, and the time of the output at this offset; see Time.
func (j *Journal) Times() []int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.times.clone()
}

// Freed returns the offset before which output was deleted to free disk space.
func (j *Journal) Freed() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.freed
}

// TakeFreed is like Freed. It also reports whether the offset is greater than the result of the previous TakeFreed.
func (j *Journal) TakeFreed() (offset int64, changed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	changed = j.freed > j.reported
	j.reported = j.freed
	return j.freed, changed
}

// Close closes the files and releases the reserved space.
func (j *Journal) Close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.room = released
	if end := j.End(); j.allocated > end {
		_ = unix.Fallocate(int(j.out.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, end, j.allocated-end)
	}
	_, _ = j.out.Close(), j.stderr.file.Close()
}
