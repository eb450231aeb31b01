package supervisor

import (
	"context"
	"ductor/internal/proctree"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupFile says in a run's directory which group is its own. It is written before the group is made.
const cgroupFile = "cgroup"

// cgroupNote is what is in that file. A path of another boot means nothing.
type cgroupNote struct {
	Path string `json:"path"`
	Boot string `json:"boot"`
}

// cgroupPrefix begins the name of every group that is made for a run.
const cgroupPrefix = "ductor-"

// cgroupName tells the groups of one directory of runs from those of another, and who made one: a supervisor makes one
// in its life.
type cgroupName struct {
	dev, ino uint64 // of the directory of runs
	owner    proctree.ID
}

func (n cgroupName) String() string {
	return fmt.Sprintf("%s%x-%x-%d-%d", cgroupPrefix, n.dev, n.ino, n.owner.PID, n.owner.Start)
}

// parseCgroupName reads a group's name; false for one that no supervisor gave.
func parseCgroupName(name string) (n cgroupName, ok bool) {
	f := strings.Split(strings.TrimPrefix(name, cgroupPrefix), "-")
	if len(f) != 4 {
		return n, false
	}
	n.dev, _ = strconv.ParseUint(f[0], 16, 64)
	n.ino, _ = strconv.ParseUint(f[1], 16, 64)
	n.owner = parseProcID(f[2], f[3])
	return n, n.owner.PID > 0 && n.String() == name
}

// nameCgroup is the name of owner's group among the runs of root.
func nameCgroup(root string, owner proctree.ID) (n cgroupName, err error) {
	var st unix.Stat_t
	if err := unix.Stat(root, &st); err != nil {
		return n, err
	}
	return cgroupName{dev: uint64(st.Dev), ino: st.Ino, owner: owner}, nil
}

// makeCgroup makes a group below our own for the run whose directory is dir. Where none can be had it gives none, and
// all is found by parent, session and mark alone.
func makeCgroup(root, dir string, owner proctree.ID) proctree.Group {
	own, err := proctree.GroupParent("self")
	if err != nil {
		return proctree.Group{}
	}
	name, err := nameCgroup(root, owner)
	if err != nil {
		return proctree.Group{}
	}
	note := cgroupNote{Path: filepath.Join(own, name.String()), Boot: proctree.BootID()}
	raw, err := json.Marshal(note)
	if err != nil || os.WriteFile(filepath.Join(dir, cgroupFile), raw, 0o600) != nil {
		return proctree.Group{}
	}
	if err := unix.Mkdir(note.Path, 0o755); err != nil {
		_ = removeIfThere(filepath.Join(dir, cgroupFile)) // it would name a group that is not there
		return proctree.Group{}
	}
	return proctree.Group{Path: note.Path}
}

// noted is the group that the directory dir, below root, names as its own; none when there is none or the note is not
// to be trusted.
func noted(root, dir string) proctree.Group {
	var note cgroupNote
	if err := readJSON(dir, cgroupFile, &note); err != nil || note.Boot != proctree.BootID() {
		return proctree.Group{}
	}
	name, ok := parseCgroupName(filepath.Base(note.Path))
	ours, err := nameCgroup(root, name.owner)
	if !ok || err != nil || name != ours || !filepath.IsAbs(note.Path) || !proctree.IsGroup(note.Path) {
		return proctree.Group{}
	}
	return proctree.Group{Path: note.Path}
}

// endCgroup ends and removes a group whose processes need no time to end.
func endCgroup(ctx context.Context, c proctree.Group) error {
	if c.Path == "" {
		return nil
	}
	if err := proctree.In(c).End(ctx, 0); err != nil {
		return err
	}
	return c.Remove()
}

// sweepCgroups ends and removes the groups beside us that were left by dead supervisors of runs that root does not
// have any more. What cannot be swept does no harm, and the next sweep tries again.
func sweepCgroups(ctx context.Context, root string) {
	own, err := proctree.OwnGroup()
	if err != nil {
		return
	}
	left := orphanedCgroups(own, root)
	if len(left) == 0 {
		return
	}
	entries, err := os.ReadDir(root) // after the groups: whose supervisor was dead then has its last name by now
	if err != nil {
		return
	}
	for _, e := range entries {
		c := noted(root, filepath.Join(root, e.Name()))
		left = slices.DeleteFunc(left, func(other proctree.Group) bool { return other == c })
	}
	for _, c := range left {
		_ = endCgroup(ctx, c)
	}
}

// orphanedCgroups lists the groups in own that dead supervisors of root's runs made.
func orphanedCgroups(own, root string) (left []proctree.Group) {
	entries, err := os.ReadDir(own)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name, ok := parseCgroupName(e.Name())
		if !ok || name.owner.Running() {
			continue
		}
		if ours, err := nameCgroup(root, name.owner); err == nil && ours == name {
			left = append(left, proctree.Group{Path: filepath.Join(own, e.Name())})
		}
	}
	return left
}
