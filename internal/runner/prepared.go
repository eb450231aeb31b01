package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ductor/internal/runner/journal"
)

const (
	// preparedDir is the name of the directory for the next run. It is not a valid run ID.
	preparedDir = ".next"
	// prepareAfter is how long the runner waits after the start of an agent before it prepares the next run. If it
	// prepared the next run at once, the start would take longer.
	prepareAfter = 50 * time.Millisecond
)

// runFiles are the files of a run that the runner keeps open.
type runFiles struct {
	log runLog
	out *journal.Journal
}

// openRunFiles opens or creates the files in dir.
func openRunFiles(dir string, flags int) (f runFiles, err error) {
	if f.log.file, err = os.OpenFile(filepath.Join(dir, logFile), flags|os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW,
		0o600); err != nil {
		return f, err
	}
	if f.out, err = journal.Open(filepath.Join(dir, outFile), filepath.Join(dir, errFile), flags); err != nil {
		return f, errors.Join(err, f.log.file.Close())
	}
	return f, nil
}

func (f runFiles) close() {
	_ = f.log.file.Close()
	f.out.Close()
}

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
	// cannotPrepare means that the runner never prepares a directory, for example because the file system does not
	// support RENAME_NOREPLACE.
	cannotPrepare
)

// linked reports whether all files still have their names. A user may have deleted them.
func (f runFiles) linked() bool {
	out, stderr := f.out.Files()
	for _, file := range []*os.File{f.log.file, out, stderr} {
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
	case errors.Is(err, unix.EEXIST): // dir exists; keep the prepared directory for another run
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

// prepareIfDue prepares a directory if p.at has passed and the function wanted returns true. If the disk has too little
// space, prepareIfDue prepares nothing. It returns the time of the next call.
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
	case !files.out.HasReserve():
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

func (p *prepared) remove(root string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == isPrepared {
		p.files.close()
	}
	p.state = notPrepared
	_ = os.RemoveAll(filepath.Join(root, preparedDir)) // on failure, the next runner deletes it
}
