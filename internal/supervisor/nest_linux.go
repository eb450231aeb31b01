package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// nestPrefix begins the name of a directory that is to become a run's. No run id begins with a dot.
const nestPrefix = ".new-"

// razedPrefix begins the name of a nest that was taken away.
const razedPrefix = ".razed"

// strayWait is how long supervisors that lost their client may take to leave or to name their run.
const strayWait = time.Second

// nest is what a supervisor makes before it knows what to run, so that a start need not wait for the disk:
// the run's directory under another name, and in it the socket, the first file of the spool and the reserve;
// and the control group that the agent will be in.
type nest struct {
	root, dir string
	listener  net.Listener
	spool     *os.File
	cg        cgroup
	oom       oomCounter
	client    clientID
	owner     ProcID // we
	boot      string // of the machine
}

// makeNest makes a nest below root for what the process client will want. It leaves nothing when it fails.
func makeNest(root string, tr transport, client int) (*nest, error) {
	var name nestName
	name.owner, _ = LookUp(os.Getpid())
	name.client.PID = client // which is nobody, if it is dead already
	if id, ok := LookUp(client); ok {
		name.client.ProcID = id
	}
	n := &nest{root: root, dir: filepath.Join(root, name.String()), oom: newOOMCounter(), client: name.client, owner: name.owner, boot: bootID()}
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
	n.cg = makeCgroup(root, n.dir, name.owner)
	return n, nil
}

// settle gives the nest the name of its run. A run of that name that is there already gives an error
// matching fs.ErrExist.
func (n *nest) settle(id string) error {
	dir := filepath.Join(n.root, id)
	now := time.Now()
	if err := os.Chtimes(n.dir, now, now); err != nil { // who finds it waits for its spec, for it is new
		return fmt.Errorf("name directory of run %s: %w", id, err)
	}
	err := unix.Renameat2(unix.AT_FDCWD, n.dir, unix.AT_FDCWD, dir, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not every file system can
		if err = os.Mkdir(dir, 0o700); err == nil {
			if err = os.Rename(n.dir, dir); err != nil { // over the empty one
				err = errors.Join(err, os.Remove(dir))
			}
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
	_ = n.cg.remove() // one that stays is swept as soon as we are gone
	return os.RemoveAll(n.dir)
}

// nestName is who waits in a nest, and which client it waits for.
type nestName struct {
	owner  ProcID
	client clientID
}

func (n nestName) String() string {
	return fmt.Sprintf("%s%d-%d-%d-%d", nestPrefix, n.owner.PID, n.owner.Start, n.client.PID, n.client.Start)
}

// parseNest reads the name of a directory; false for one that is no nest.
func parseNest(name string) (n nestName, ok bool) {
	text, ok := strings.CutPrefix(name, nestPrefix)
	if !ok {
		return n, false
	}
	f := append(strings.Split(text, "-"), "", "", "", "")
	n.owner, n.client = parseProcID(f[0], f[1]), clientID{parseProcID(f[2], f[3])}
	return n, true
}

// parseProcID takes what is no number for nobody.
func parseProcID(pid, start string) (id ProcID) {
	id.PID, _ = strconv.Atoi(pid)
	id.Start, _ = strconv.ParseUint(start, 10, 64)
	return id
}

// stray says whether the supervisor in the nest has lost its client, and may have got its spec before.
func (n nestName) stray() bool {
	return n.owner.Running() && n.client.dead()
}

// clientID is a client's process as its supervisor sees it: no PID when it cannot be seen from there.
type clientID struct{ ProcID }

// dead says whether the client is known to be gone. Its socket may be open a moment longer, in a child that it
// was about to start.
func (c clientID) dead() bool { return c.PID != 0 && !c.Running() }

// sweepNests removes what supervisors left that were killed before they had anything to run.
func sweepNests(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		n, ok := parseNest(e.Name())
		if ok && !n.owner.Running() || strings.HasPrefix(e.Name(), razedPrefix) {
			_ = noted(root, filepath.Join(root, e.Name())).remove() // nothing was ever in it
			errs = append(errs, os.RemoveAll(filepath.Join(root, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// strays lists the nests of strays.
func strays(root string) (names []string, err error) {
	entries, err := os.ReadDir(root)
	for _, e := range entries {
		if n, ok := parseNest(e.Name()); ok && n.stray() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// settleStrays returns when no stray can become a run any more: each became one by now, or left, or has lost
// its nest because it did neither in good time. A supervisor makes its nest before it looks whether its client is
// still there, so a client that is dead has no strays but these.
func settleStrays(ctx context.Context, root string) error {
	for until := time.Now().Add(strayWait); ; {
		names, err := strays(root)
		if err != nil || len(names) == 0 {
			return err
		}
		if time.Now().After(until) {
			return razeNests(root, names)
		}
		select {
		case <-time.After(firstPoll):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// razeNests takes nests away from strays that are stuck: a spec they may have is never started.
func razeNests(root string, names []string) error {
	var errs []error
	for _, name := range names {
		razed := filepath.Join(root, razedPrefix+name)
		err := os.Rename(filepath.Join(root, name), razed)
		if errors.Is(err, fs.ErrNotExist) { // it did make haste
			continue
		}
		if err == nil {
			err = os.RemoveAll(razed)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
