package supervisor

import (
	"context"
	"ductor/internal/proctree"
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

// stagingPrefix begins the name of a staging directory. No run id begins with a dot.
const stagingPrefix = ".new-"

// discardedPrefix begins the name of a staging directory that was discarded.
const discardedPrefix = ".razed"

// orphanWait is how long supervisors that lost their client may take to leave or to name their run.
const orphanWait = time.Second

// staging is the directory that a supervisor makes before it knows what to run, so that a start need not wait for the disk:
// the run's directory under another name, and in it the socket, the first file of the journal and the reserve;
// and the control group that the agent will be in.
type staging struct {
	root, dir string
	listener  net.Listener
	journal   *os.File
	cg        proctree.Group
	oom       proctree.OOMCounter
	client    clientID
	owner     proctree.ID // we
	boot      string      // of the machine
}

// makeStaging makes a staging directory below root for what the process client will want. It leaves nothing when it fails.
func makeStaging(root string, tr transport, client int) (*staging, error) {
	var name stagingName
	name.owner, _ = proctree.LookUp(os.Getpid())
	name.client.PID = client // which matches no process, if it is dead already
	if id, ok := proctree.LookUp(client); ok {
		name.client.ID = id
	}
	n := &staging{root: root, dir: filepath.Join(root, name.String()), oom: proctree.NewOOMCounter(), client: name.client, owner: name.owner, boot: proctree.BootID()}
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of run: %w", err)
	}
	var err error
	if n.listener, err = tr.listen(n.dir); err == nil {
		n.journal, err = segment{dir: n.dir}.create()
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

// settle gives the staging directory the name of its run. A run of that name that is there already gives an error
// matching fs.ErrExist.
func (n *staging) settle(id string) error {
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

// discard removes the staging directory, or the run's directory that it became.
func (n *staging) discard() error {
	if n.listener != nil {
		_ = n.listener.Close() // the directory goes anyway
	}
	if n.journal != nil {
		_ = n.journal.Close()
	}
	_ = n.cg.Remove() // one that stays is swept as soon as we are gone
	return os.RemoveAll(n.dir)
}

// stagingName holds the supervisor of a staging directory, and the client it waits for.
type stagingName struct {
	owner  proctree.ID
	client clientID
}

func (n stagingName) String() string {
	return fmt.Sprintf("%s%d-%d-%d-%d", stagingPrefix, n.owner.PID, n.owner.Start, n.client.PID, n.client.Start)
}

// parseStaging reads the name of a directory; false for one that is no staging directory.
func parseStaging(name string) (n stagingName, ok bool) {
	text, ok := strings.CutPrefix(name, stagingPrefix)
	if !ok {
		return n, false
	}
	f := append(strings.Split(text, "-"), "", "", "", "")
	n.owner, n.client = parseProcID(f[0], f[1]), clientID{parseProcID(f[2], f[3])}
	return n, true
}

// parseProcID reads what is no number as zero.
func parseProcID(pid, start string) (id proctree.ID) {
	id.PID, _ = strconv.Atoi(pid)
	id.Start, _ = strconv.ParseUint(start, 10, 64)
	return id
}

// orphaned says whether the supervisor in the staging directory has lost its client, and may have got its spec before.
func (n stagingName) orphaned() bool {
	return n.owner.Running() && n.client.dead()
}

// clientID is a client's process as its supervisor sees it: no PID when it cannot be seen from there.
type clientID struct{ proctree.ID }

// dead says whether the client is known to be gone. Its socket may be open a moment longer, in a child that it
// was about to start.
func (c clientID) dead() bool { return c.PID != 0 && !c.Running() }

// sweepStaging removes what supervisors left that were killed before they had anything to run.
func sweepStaging(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		n, ok := parseStaging(e.Name())
		if ok && !n.owner.Running() || strings.HasPrefix(e.Name(), discardedPrefix) {
			_ = noted(root, filepath.Join(root, e.Name())).Remove() // nothing was ever in it
			errs = append(errs, os.RemoveAll(filepath.Join(root, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// orphans lists the staging directories whose supervisors are orphans.
func orphans(root string) (names []string, err error) {
	entries, err := os.ReadDir(root)
	for _, e := range entries {
		if n, ok := parseStaging(e.Name()); ok && n.orphaned() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// awaitOrphans returns when no orphan can become a run any more: each became one by now, or left, or has lost
// its staging directory because it did neither in good time. A supervisor makes its staging directory before it looks
// whether its client is still there, so a client that is dead has no orphans but these.
func awaitOrphans(ctx context.Context, root string) error {
	for until := time.Now().Add(orphanWait); ; {
		names, err := orphans(root)
		if err != nil || len(names) == 0 {
			return err
		}
		if time.Now().After(until) {
			return discardOrphans(root, names)
		}
		select {
		case <-time.After(firstPoll):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// discardOrphans removes the staging directories of orphans that hang: a spec they may have is never started.
func discardOrphans(root string, names []string) error {
	var errs []error
	for _, name := range names {
		discarded := filepath.Join(root, discardedPrefix+name)
		err := os.Rename(filepath.Join(root, name), discarded)
		if errors.Is(err, fs.ErrNotExist) { // it did make haste
			continue
		}
		if err == nil {
			err = os.RemoveAll(discarded)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
