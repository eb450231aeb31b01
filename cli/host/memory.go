package host

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// keptFree is the share of the memory that agents must leave free.
const keptFree = 0.2

// Memory computes how much memory agents may still use. This is the memory that the machine reports as available
// (proc(5), MemAvailable), minus a fifth of the total memory. If this process is in a control group with a lower limit,
// the group's limit and usage count instead. Memory reads the file system at root, normally "/".
type Memory struct{ root fs.FS }

// NewMemory returns a Memory that reads from root.
func NewMemory(root fs.FS) Memory { return Memory{root} }

// Available returns how many more bytes agents may use. It is negative if less than a fifth of the memory is free. It
// returns math.MaxInt64 if it cannot read the figures.
func (m Memory) Available() int64 {
	all, err := m.numbers("proc/meminfo")
	if err != nil || all["MemTotal"] == 0 {
		return math.MaxInt64
	}
	total, available := all["MemTotal"]<<10, all["MemAvailable"]<<10
	left := available - int64(keptFree*float64(total))
	for _, g := range m.groups() {
		if g.limit < total {
			left = min(left, g.limit-g.used-int64(keptFree*float64(g.limit)))
		}
	}
	return left
}

// memoryGroup contains the memory limit and usage of a control group, in bytes. The field used does not include cached
// file pages that the kernel can drop.
type memoryGroup struct{ limit, used int64 }

// groups lists the control groups of this process, from the innermost to the root.
func (m Memory) groups() (list []memoryGroup) {
	own, err := fs.ReadFile(m.root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(own)) {
		dir, two := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		if !two {
			continue
		}
		for ; ; dir = path.Dir(dir) {
			if g, err := m.group(path.Join("sys/fs/cgroup", dir)); err == nil {
				list = append(list, g)
			}
			if dir == "." || dir == "" {
				return list
			}
		}
	}
	return list
}

func (m Memory) group(dir string) (memoryGroup, error) {
	limit, err := m.number(path.Join(dir, "memory.max"))
	if err != nil {
		return memoryGroup{}, err
	}
	used, err := m.number(path.Join(dir, "memory.current"))
	if err != nil {
		return memoryGroup{}, err
	}
	stat, err := m.numbers(path.Join(dir, "memory.stat"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return memoryGroup{}, err
	}
	return memoryGroup{limit: limit, used: used - stat["inactive_file"]}, nil
}

func (m Memory) number(name string) (int64, error) {
	text, err := fs.ReadFile(m.root, name)
	if err != nil {
		return 0, fmt.Errorf("read a memory limit: %w", err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

func (m Memory) numbers(name string) (map[string]int64, error) {
	file, err := m.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read memory: %w", err)
	}
	defer func() { _ = file.Close() }() // closing a file that was only read cannot lose data
	all := map[string]int64{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			all[strings.TrimSuffix(fields[0], ":")] = n
		}
	}
	return all, lines.Err()
}

// MachineMemory returns the Memory of this machine.
func MachineMemory() Memory { return NewMemory(os.DirFS("/")) }
