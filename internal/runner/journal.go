package runner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// ahead is the number of bytes that the runner reserves on the disk beyond the end of a journal. A disk that
	// becomes full then does not interrupt a write of the agent.
	ahead = 4 << 20
	// If less than aheadLow bytes are still reserved, the runner reserves more. If it cannot reserve even aheadLow/4
	// bytes, it ends the agent.
	aheadLow = 2 << 20
	// The runner pauses an agent when more than pauseLag bytes of its output are unread, and resumes it below
	// resumeLag.
	pauseLag  = 64 << 20
	resumeLag = 32 << 20
	// If the stored standard error exceeds maxStderr bytes, the runner frees all but the last keepStderr bytes.
	maxStderr  = 1 << 20
	keepStderr = 64 << 10
	maxTimes   = 4096
	timeEvery  = 100 * time.Millisecond
)

// journal is an agent's standard output and standard error on disk. Safe for concurrent use.
type journal struct {
	out, err *os.File

	mu        sync.Mutex
	size      int64 // size of the output when the journal was last checked
	errSize   int64
	allocated int64 // end of the reserved disk space, as an offset in the output
	freed     int64 // output before this offset is freed
	errFreed  int64
	read      int64 // the owner has read the output before this offset
	times     []int64
	every     time.Duration // minimum interval between two entries of times
	room      room
}

// room is the state of a journal's disk space.
type room int

const (
	plenty   room = iota
	scarce        // the disk is full
	released      // the files are closed; their descriptor numbers may belong to other files
)

// openJournal opens or creates the files of a run. For a new journal it reserves space before the agent starts. Output
// then still fits if the agent itself fills the disk.
func openJournal(dir string, flags int) (j *journal, err error) {
	j = &journal{every: timeEvery}
	all := flags | os.O_RDWR | os.O_APPEND | unix.O_NOFOLLOW
	if j.out, err = os.OpenFile(dir+"/"+outFile, all, 0o600); err != nil {
		return nil, err
	}
	if j.err, err = os.OpenFile(dir+"/"+errFile, all, 0o600); err != nil {
		return nil, errors.Join(err, j.out.Close())
	}
	if flags&os.O_CREATE != 0 && j.reserve(ahead) != nil {
		j.reserveSome()
	}
	return j, nil
}

// enforceLimit frees old output so that at most limit bytes remain. If a client owns the run, enforceLimit does not
// free output that the client has not read. It then reserves space for more output. It returns true if the disk is full
// and nothing more can be freed.
func (j *journal) enforceLimit(limit int64, owned bool) (full bool) {
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
	if j.errSize-j.errFreed > maxStderr {
		j.errFreed = punch(j.err, j.errFreed, j.errSize-keepStderr)
	}
	if j.allocated-j.size >= aheadLow {
		return false
	}
	err := j.reserve(ahead)
	// On a full disk, free more: all output that the owner has read or, without an owner, all output.
	if err != nil && (owned && j.read > j.freed || !owned && j.size > j.freed) {
		if owned {
			j.free(j.read)
		} else {
			j.free(j.size - minJournal)
		}
		err = j.reserve(ahead)
	}
	if j.room = plenty; errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		j.room = scarce
		j.reserveSome()
	}
	return j.room == scarce && j.allocated-j.size < aheadLow/4
}

// reserve reserves disk space for n more bytes of output.
func (j *journal) reserve(n int64) error {
	err := unix.Fallocate(int(j.out.Fd()), unix.FALLOC_FL_KEEP_SIZE, j.size, n)
	// Some file systems do not support fallocate.
	if err == nil || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		j.allocated = max(j.allocated, j.size+n)
		return nil
	}
	return err
}

// reserveSome reserves as much space as possible on a disk with less than `ahead` bytes left. If fewer than aheadLow/4
// bytes are left, it reserves nothing, because that would not be enough for an agent.
func (j *journal) reserveSome() {
	for room := int64(ahead / 2); room >= aheadLow/4 && j.reserve(room) != nil; room /= 2 {
	}
}

func (j *journal) free(offset int64) { j.freed = punch(j.out, j.freed, offset) }

// punch frees the disk space of a part of a file, which makes this part a hole. It returns the end of the freed part.
func punch(f *os.File, from, to int64) (done int64) {
	if to <= from || unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from,
		to-from) != nil {
		return from
	}
	return to
}

// freeOutput frees the output before offset, and all of standard error.
func (j *journal) freeOutput(offset int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.room == released {
		return
	}
	j.free(min(offset, j.end()))
	j.errFreed = punch(j.err, j.errFreed, fileSize(j.err, 0))
}

// setRead records how far the owner has read.
func (j *journal) setRead(offset int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.read = offset
}

// lag returns the number of bytes that the agent has written and the client has not read.
func (j *journal) lag() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size - j.read
}

// end returns the current size of the output.
func (j *journal) end() int64 { return fileSize(j.out, 0) }

const stderrTail = 8 << 10

// stderr returns the last bytes of standard error, at most stderrTail.
func (j *journal) stderr() string {
	size := fileSize(j.err, 0)
	buf := make([]byte, min(size, stderrTail))
	n, _ := j.err.ReadAt(buf, size-int64(len(buf))) // a short read is fine
	return string(bytes.TrimLeft(buf[:n], "\x00"))  // a freed range reads as zeros
}

// copyTimes returns a copy of j.times: an offset in the output, the time of this output, the next offset, and so on.
func (j *journal) copyTimes() []int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.times)
}

// freedUpTo returns the offset before which the output is freed.
func (j *journal) freedUpTo() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.freed
}

// close closes the files and releases the reserved space.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.room = released
	if end := j.end(); j.allocated > end {
		_ = unix.Fallocate(int(j.out.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, end, j.allocated-end)
	}
	_, _ = j.out.Close(), j.err.Close()
}

const (
	// preparedDir is the name of the directory for the next run. It is not a valid run ID.
	preparedDir = ".next"
	// prepareAfter is how long the runner waits after the start of an agent before it prepares the next run. If it
	// prepared the next run at once, the start would take longer.
	prepareAfter = 50 * time.Millisecond
)

// runFiles are the files of a run that the runner keeps open.
type runFiles struct {
	log *os.File
	out *journal
}

// openRunFiles opens or creates the files in dir.
func openRunFiles(dir string, flags int) (f runFiles, err error) {
	if f.log, err = os.OpenFile(filepath.Join(dir, logFile), flags|os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW,
		0o600); err != nil {
		return f, err
	}
	if f.out, err = openJournal(dir, flags); err != nil {
		return f, errors.Join(err, f.log.Close())
	}
	return f, nil
}

func (f runFiles) close() {
	_ = f.log.Close()
	f.out.close()
}

// makeRunFiles creates the directory of a run and its files.
func makeRunFiles(dir string) (runFiles, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return runFiles{}, fmt.Errorf("create the directory of a run: %w", err)
	}
	f, err := openRunFiles(dir, os.O_CREATE|os.O_EXCL)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, recordFile), nil, 0o600)
		if err != nil {
			f.close()
		}
	}
	if err != nil {
		return runFiles{}, errors.Join(err, os.RemoveAll(dir))
	}
	return f, nil
}

// prepared is a directory with files that the runner creates in advance for the next run. On some file systems,
// creating a file takes a millisecond, which is longer than all other steps of a start. Safe for concurrent use.
type prepared struct {
	mu    sync.Mutex
	state preparing
	files runFiles
	at    time.Duration // when to create the directory, as the time since boot
}

type preparing int

const (
	notPrepared preparing = iota
	isPrepared
	// cannotPrepare means that the runner prepares no directory, for example because the file system does not support
	// RENAME_NOREPLACE.
	cannotPrepare
)

// linked reports whether all files still have their names. A user may have deleted them.
func (f runFiles) linked() bool {
	for _, file := range []*os.File{f.log, f.out.out, f.out.err} {
		var st unix.Stat_t
		if err := unix.Fstat(int(file.Fd()), &st); err != nil || st.Nlink == 0 {
			return false
		}
	}
	return true
}

// claim returns the open files of a new run. It uses the prepared directory if one exists, and otherwise creates a
// directory. The error matches fs.ErrExist if the ID is in use.
func (p *prepared) claim(root, id string) (runFiles, error) {
	dir := filepath.Join(root, id)
	files, err := p.rename(root, dir)
	switch {
	case err == nil:
		return files, nil
	case errors.Is(err, unix.EEXIST):
		return runFiles{}, fmt.Errorf("create the directory of a run: %w", err)
	}
	return makeRunFiles(dir)
}

var errNotPrepared = errors.New("no prepared run")

// rename renames the prepared directory to dir. If dir exists, rename returns EEXIST. After any other error, no
// directory is prepared.
func (p *prepared) rename(root, dir string) (runFiles, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = sinceBoot() + prepareAfter
	if p.state != isPrepared {
		return runFiles{}, errNotPrepared
	}
	err := errNotPrepared
	if p.files.linked() {
		err = unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, preparedDir), unix.AT_FDCWD, dir, unix.RENAME_NOREPLACE)
	}
	switch {
	case errors.Is(err, unix.EEXIST): // the directory stays prepared
		return runFiles{}, err
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		p.state = cannotPrepare
	default:
		p.state = notPrepared
	}
	if err != nil {
		p.files.close()
		return runFiles{}, err
	}
	return p.files, nil
}

// prepareIfDue prepares a directory if p.at has passed and wanted returns true. If the disk has too little space,
// prepareIfDue prepares nothing. It returns the time of the next call.
func (p *prepared) prepareIfDue(root string, now time.Duration, wanted func() bool) (again time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != notPrepared || !wanted() {
		return now + checkEvery
	}
	if now < p.at {
		return p.at
	}
	p.at = now + checkEvery
	dir := filepath.Join(root, preparedDir)
	if os.RemoveAll(dir) != nil { // a previous runner may have left the directory behind
		return p.at
	}
	files, err := makeRunFiles(dir)
	switch {
	case err != nil:
	case files.out.allocated < ahead:
		files.close()
		_ = os.RemoveAll(dir)
	default:
		p.files, p.state = files, isPrepared
	}
	return p.at
}

// wait waits until no goroutine creates or renames the directory.
func (p *prepared) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
}

// remove deletes the prepared directory.
func (p *prepared) remove(root string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == isPrepared {
		p.files.close()
	}
	p.state = notPrepared
	_ = os.RemoveAll(filepath.Join(root, preparedDir)) // on failure, the next runner deletes it
}
