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
	// ahead is how much is allocated beyond the end of a journal, so that a full disk does not break a write.
	ahead = 4 << 20
	// aheadLow is how much must be left of that before more is allocated, and the least without which an agent ends.
	aheadLow = 2 << 20
	// pauseLag is how far an agent may be ahead of its reader, and resumeLag where it goes on.
	pauseLag  = 64 << 20
	resumeLag = 32 << 20
	// stderrMost is how large standard error may grow before its head is freed, up to stderrKept before its end.
	stderrMost = 1 << 20
	stderrKept = 64 << 10
	mostTimes  = 4096
	timeEvery  = 100 * time.Millisecond
)

// journal is an agent's standard output on disk. Safe for concurrent use.
type journal struct {
	out, err *os.File

	mu        sync.Mutex
	size      int64 // when it was looked at last
	errSize   int64
	allocated int64 // the file has room up to here
	freed     int64 // of the head
	errFreed  int64
	read      int64 // the client that owns the run has read so much
	times     []int64
	every     time.Duration // between two of times
	room      room
}

// room says whether a journal can grow.
type room int

const (
	plenty   room = iota
	scarce        // the disk is full
	released      // the files are closed, and their numbers may be those of others by now
)

// openJournal opens or makes the files of a run. A new journal has room ahead before its agent writes: one that fills
// the disk at once must not break its own output.
func openJournal(dir string, flags int) (j *journal, err error) {
	j = &journal{every: timeEvery}
	if j.out, err = os.OpenFile(dir+"/"+outFile, flags|os.O_RDWR|os.O_APPEND|unix.O_NOFOLLOW, 0o600); err != nil {
		return nil, err
	}
	if j.err, err = os.OpenFile(dir+"/"+errFile, flags|os.O_RDWR|os.O_APPEND|unix.O_NOFOLLOW, 0o600); err != nil {
		return nil, errors.Join(err, j.out.Close())
	}
	if flags&os.O_CREATE != 0 && j.reserve(ahead) != nil {
		j.reserveSome() // a full disk is dealt with when the journal grows
	}
	return j, nil
}

// keep bounds the journal to most bytes, beside what the client that owns the run has not read, and allocates room
// ahead. It says whether the disk is full and nothing can be freed.
func (j *journal) keep(most int64, owned bool) (full bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.room == released {
		return false
	}
	bound := j.size - most
	if owned {
		bound = min(bound, j.read)
	}
	j.free(bound)
	if j.errSize-j.errFreed > stderrMost {
		j.errFreed = punch(j.err, j.errFreed, j.errSize-stderrKept)
	}
	if j.allocated-j.size >= aheadLow {
		return false
	}
	err := j.reserve(ahead)
	// what may be read again goes before what is not written yet
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

// reserve allocates room ahead.
func (j *journal) reserve(room int64) error {
	err := unix.Fallocate(int(j.out.Fd()), unix.FALLOC_FL_KEEP_SIZE, j.size, room)
	if err == nil || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) { // some file systems cannot
		j.allocated = max(j.allocated, j.size+room)
		return nil
	}
	return err
}

// reserveSome allocates what there is on a disk that does not have all that is to be ahead, if that is enough for an
// agent to run.
func (j *journal) reserveSome() {
	for room := int64(ahead / 2); room >= aheadLow/4 && j.reserve(room) != nil; room /= 2 {
	}
}

// free gives the disk what is before offset back.
func (j *journal) free(offset int64) { j.freed = punch(j.out, j.freed, offset) }

// punch makes a hole in a file up to offset, and says how far that is done.
func punch(f *os.File, from, to int64) (done int64) {
	if to <= from || unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, from,
		to-from) != nil {
		return from
	}
	return to
}

// forget frees the output before offset, and standard error.
func (j *journal) forget(offset int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.room == released {
		return
	}
	j.free(min(offset, j.end()))
	if info, err := j.err.Stat(); err == nil {
		j.errFreed = punch(j.err, j.errFreed, info.Size())
	}
}

// took says how far the client that owns the run has read.
func (j *journal) took(offset int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.read = offset
}

// lag is how far the agent is ahead of its reader.
func (j *journal) lag() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size - j.read
}

// end is the size of the output now.
func (j *journal) end() int64 {
	info, err := j.out.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

const stderrTail = 8 << 10

// stderr is the tail of standard error.
func (j *journal) stderr() string {
	info, err := j.err.Stat()
	if err != nil {
		return ""
	}
	buf := make([]byte, min(info.Size(), stderrTail))
	n, _ := j.err.ReadAt(buf, info.Size()-int64(len(buf))) // what can be read of it
	return string(bytes.TrimLeft(buf[:n], "\x00"))         // without what was freed
}

// allTimes are an offset and a time, in turns.
func (j *journal) allTimes() []int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.times)
}

// from is the offset of the first byte that is kept.
func (j *journal) from() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.freed
}

// release closes the files, and gives back what is allocated beyond their end.
func (j *journal) release() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.room = released
	if end := j.end(); j.allocated > end {
		_ = unix.Fallocate(int(j.out.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, end, j.allocated-end)
	}
	_, _ = j.out.Close(), j.err.Close()
}

func (j *journal) isScarce() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.room == scarce
}

const (
	// preparedDir is where the files of the next run wait. It is no id of a run.
	preparedDir = ".next"
	// prepareAfter is how long after a start the files of the next run are made: later than an agent needs a processor
	// most.
	prepareAfter = 50 * time.Millisecond
)

// runFiles are the files of a run that stay open as long as the runner holds the run.
type runFiles struct {
	log *os.File
	out *journal
}

// openRunFiles opens the files in dir, or makes them.
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
	f.out.release()
}

// makeRunFiles makes the directory of a run with its files.
func makeRunFiles(dir string) (runFiles, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return runFiles{}, fmt.Errorf("make the directory of a run: %w", err)
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

// prepared is the directory of the next run, with its files, made before that run starts: some file systems take a
// millisecond for each new file, which is longer than the rest of a start. Safe for concurrent use.
type prepared struct {
	mu    sync.Mutex
	state preparing
	files runFiles
	at    time.Duration // since boot: it is made then, if it is not there
}

// preparing is what there is of the directory of the next run.
type preparing int

// The states of the directory.
const (
	notPrepared preparing = iota
	isPrepared
	// or must not; the file system may give a directory no other name without a risk for what has that name
	cannotPrepare
)

// linked says whether all files still have their names: somebody may have tidied up.
func (f runFiles) linked() bool {
	for _, file := range []*os.File{f.log, f.out.out, f.out.err} {
		var st unix.Stat_t
		if err := unix.Fstat(int(file.Fd()), &st); err != nil || st.Nlink == 0 {
			return false
		}
	}
	return true
}

// take gives the prepared directory the name of a run, or makes one of that name. A run of its name that is there
// already gives an error matching fs.ErrExist.
func (p *prepared) take(root, id string) (runFiles, error) {
	dir := filepath.Join(root, id)
	files, err := p.rename(root, dir)
	switch {
	case err == nil:
		return files, nil
	case errors.Is(err, unix.EEXIST):
		return runFiles{}, fmt.Errorf("make the directory of a run: %w", err)
	}
	return makeRunFiles(dir)
}

// errNotPrepared says that there is no directory to rename.
var errNotPrepared = errors.New("no run is prepared")

// rename gives the prepared directory a name. EEXIST says that the name is taken; after any other error nothing is
// prepared.
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
	case errors.Is(err, unix.EEXIST): // it stays for another run
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

// tend prepares the directory once that is due and wanted, and says when to ask again. On a disk without all the room
// that a journal has ahead nothing is prepared, and it is tried again later: a start finds out what room there is then.
func (p *prepared) tend(root string, now time.Duration, wanted func() bool) (again time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != notPrepared || !wanted() {
		return now + lookEvery
	}
	if now < p.at {
		return p.at
	}
	p.at = now + lookEvery
	dir := filepath.Join(root, preparedDir)
	if os.RemoveAll(dir) != nil { // of the runner before this one
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

// settle returns once a directory that is being made is there.
func (p *prepared) settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
}

// drop removes the directory.
func (p *prepared) drop(root string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == isPrepared {
		p.files.close()
	}
	p.state = notPrepared
	_ = os.RemoveAll(filepath.Join(root, preparedDir)) // else the next runner does
}
