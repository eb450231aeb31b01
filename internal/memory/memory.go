// Package memory releases memory that the process needed only for its start. If the process uses a released page again,
// the kernel loads the page again.
package memory

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
)

// startHeap is the GC percentage (GOGC) during the start. With a low percentage, the collector frees memory early, so
// that live objects lie close together. They stay there, because the collector never moves objects.
const startHeap = 10

// Start sets the GC percentage to startHeap. When the start of the process is complete, the caller must call done,
// which restores the previous percentage and calls Release. The caller may call done again to release memory.
func Start() (done func() error) {
	percent := debug.SetGCPercent(startHeap)
	return func() error {
		debug.SetGCPercent(percent)
		return Release()
	}
}

// Release returns two kinds of memory to the kernel: freed heap memory, and the pages of the program's file. Most of
// these pages were needed only during the start. The kernel still caches the file, but can now drop the pages. Loading
// 16 pages again from the cache takes a microsecond.
func Release() error {
	mappings, err := programMappings()
	debug.FreeOSMemory() // after programMappings, to free its garbage, too
	if err != nil {
		return err
	}
	for _, m := range mappings {
		if _, _, no := syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED); no != 0 {
			return fmt.Errorf("release pages of the program: %w", no)
		}
	}
	return nil
}

type mapping struct{ start, end uintptr }

// programMappings returns the memory mappings of the program's file that are read-only and unchanged. The dynamic
// linker or a debugger may have changed other mappings.
func programMappings() (clean []mapping, err error) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, fmt.Errorf("read this process's memory map: %w", err)
	}
	defer f.Close()
	return cleanMappings(f, program)
}

// cleanMappings returns the unchanged read-only mappings of a program. smaps is the content of /proc/self/smaps. It has
// thousands of lines, so cleanMappings allocates no memory for lines about other files.
func cleanMappings(smaps io.Reader, program string) (clean []mapping, err error) {
	var now mapping
	candidate := false
	suffix := []byte(" " + program)
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		line := lines.Bytes()
		if anonymous, ok := bytes.CutPrefix(line, []byte("Anonymous:")); ok {
			if candidate && string(bytes.TrimSpace(anonymous)) == "0 kB" {
				clean = append(clean, now)
			}
		} else if isHeading(line) {
			candidate = false
			if bytes.HasSuffix(line, suffix) {
				head, path, ok := parseHeading(string(line))
				now, candidate = head.mapping, ok && path == program && !strings.Contains(head.rights, "w")
			}
		}
	}
	return clean, lines.Err()
}

// isHeading reports whether a line is the first line of a mapping. The other lines begin with a capital letter.
func isHeading(line []byte) bool { return len(line) > 0 && (line[0] < 'A' || line[0] > 'Z') }

type heading struct {
	mapping mapping
	rights  string
}

// parseHeading parses the first line of a mapping in smaps, such as "00400000-00452000 r-xp 00000000 08:02 173521
// /usr/bin/it".
func parseHeading(line string) (h heading, path string, ok bool) {
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
