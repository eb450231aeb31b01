package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// nestPrefix begins the name of a directory that is to become a run's. No run id begins with a dot.
const nestPrefix = ".new-"

// nest is what a supervisor makes before it knows what to run, so that a start need not wait for the disk:
// the run's directory under another name, and in it the socket, the first file of the spool and the reserve.
type nest struct {
	root, dir string
	listener  net.Listener
	spool     *os.File
	oom       oomCounter
}

// makeNest makes a nest below root. It leaves nothing when it fails.
func makeNest(root string, tr transport) (*nest, error) {
	self, _ := LookUp(os.Getpid())
	n := &nest{root: root, dir: filepath.Join(root, fmt.Sprintf("%s%d-%d", nestPrefix, self.PID, self.Start)), oom: newOOMCounter()}
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of run: %w", err)
	}
	var err error
	if n.listener, err = tr.listen(n.dir); err == nil {
		n.spool, err = segment{dir: n.dir}.create()
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(n.dir, spareFile), make([]byte, reserved), 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare directory of run: %w", err), n.discard())
	}
	return n, nil
}

// settle gives the nest the name of its run. A run of that name that is there already gives an error
// matching fs.ErrExist.
func (n *nest) settle(id string) error {
	dir := filepath.Join(n.root, id)
	err := unix.Renameat2(unix.AT_FDCWD, n.dir, unix.AT_FDCWD, dir, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not every file system can
		if err = os.Mkdir(dir, 0o700); err == nil {
			err = os.Rename(n.dir, dir) // over the empty one
		}
	}
	if err != nil {
		return fmt.Errorf("name directory of run %s: %w", id, err)
	}
	n.dir = dir
	return nil
}

// discard removes the nest, or the run's directory that it became.
func (n *nest) discard() error {
	if n.listener != nil {
		_ = n.listener.Close() // the directory goes anyway
	}
	if n.spool != nil {
		_ = n.spool.Close()
	}
	return os.RemoveAll(n.dir)
}

// sweepNests removes what supervisors left that were killed before they had anything to run.
func sweepNests(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), nestPrefix)
		if ok && !nestOwner(name).Running() {
			errs = append(errs, os.RemoveAll(filepath.Join(root, e.Name())))
		}
	}
	return errors.Join(errs...)
}

func nestOwner(name string) ProcID {
	pid, start, _ := strings.Cut(name, "-")
	var id ProcID
	id.PID, _ = strconv.Atoi(pid) // what is no number is nobody
	id.Start, _ = strconv.ParseUint(start, 10, 64)
	return id
}
