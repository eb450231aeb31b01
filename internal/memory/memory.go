// Package memory gives memory of this process back to the kernel that only its start needed. It changes nothing that the process
// can notice but time: what is used again comes back.
package memory

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// startHeap is how many percent the heap may grow during the start: what the start drops lies between what stays, and no collection
// moves that together.
const startHeap = 10

// Start keeps the heap small until started is called, which releases what the start used.
func Start() (started func() error) {
	percent := debug.SetGCPercent(startHeap)
	return func() error {
		debug.SetGCPercent(percent)
		return Release()
	}
}

// Release gives back freed memory of the heap, and the pages of the program's file: most of them were used by the start alone. They stay in
// the kernel's cache, which can drop them now, and those that are used again cost a microsecond for 16 of them.
func Release() error {
	debug.FreeOSMemory()
	mappings, err := programMappings()
	if err != nil {
		return err
	}
	for _, m := range mappings {
		if _, _, no := syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED); no != 0 {
			return fmt.Errorf("give back pages of the program: %w", no)
		}
	}
	return nil
}

type mapping struct{ start, end uintptr }

// programMappings are the parts of the program's file in memory that are exactly as in the file: they cannot be written to, and
// neither the dynamic linker wrote to them before they were protected, nor a debugger from outside.
func programMappings() (clean []mapping, err error) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, fmt.Errorf("look at this process's memory: %w", err)
	}
	defer f.Close()
	return cleanMappings(f, program)
}

// cleanMappings finds the clean mappings of a program in what the kernel says in smaps.
func cleanMappings(smaps io.Reader, program string) (clean []mapping, err error) {
	var now mapping
	candidate := false
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		line := lines.Text()
		if head, path, ok := headOf(line); ok {
			now, candidate = head.mapping, path == program && !strings.Contains(head.rights, "w")
		} else if anonymous, ok := strings.CutPrefix(line, "Anonymous:"); ok && candidate && strings.TrimSpace(anonymous) == "0 kB" {
			clean = append(clean, now)
		}
	}
	return clean, lines.Err()
}

type heading struct {
	mapping
	rights string
}

// headOf reads the first line of a mapping: "00400000-00452000 r-xp 00000000 08:02 173521      /usr/bin/it".
func headOf(line string) (h heading, path string, ok bool) {
	fields := strings.SplitN(line, " ", 6)
	if len(fields) < 6 {
		return h, "", false
	}
	from, to, ok := strings.Cut(fields[0], "-")
	start, err := strconv.ParseUint(from, 16, strconv.IntSize)
	end, err2 := strconv.ParseUint(to, 16, strconv.IntSize)
	if !ok || errors.Join(err, err2) != nil {
		return h, "", false
	}
	return heading{mapping{uintptr(start), uintptr(end)}, fields[1]}, strings.TrimLeft(fields[5], " "), true
}
